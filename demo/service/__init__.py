"""A small order service: the world that the demo's tools act on. Own process, own database, knows nothing of AgentOps."""
