"""Forms of the pages. They read what was typed and keep it; whether it may be done is for the actions to say."""
