"""Tools of the house; packages named in AGENTOPS_TOOLS add theirs."""
