"""The compiled code of `resmlp_mt/native`, and models in the layout that it reads."""
