"""What runs in the embedded engine's worker process, and the frames it speaks.

`llama_cpp` (the native library) is imported in `model`, `context` and `sampling` only, so only ever in the worker: a
crash of native code takes the worker down, never the daemon.
"""
