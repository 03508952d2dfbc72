"""A small order service, the world of the demo's tools: own process, own database, knows nothing of AgentOps."""
