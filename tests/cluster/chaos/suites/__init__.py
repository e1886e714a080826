"""The suites: each plays stories under one kind of fault and compares with an undisturbed run."""
