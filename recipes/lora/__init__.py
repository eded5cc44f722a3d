"""LoRA adapters: the environment they are trained in, the base model as PyTorch reads it, and the training itself."""
