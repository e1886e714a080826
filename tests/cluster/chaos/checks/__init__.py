"""Tests of the means by which the operator is tested: a check that cannot fail shows nothing."""
