"""Generated examples run without a deadline: a busy machine is no defect."""

from hypothesis import settings

settings.register_profile("wire", deadline=None, database=None, max_examples=60)
settings.load_profile("wire")
