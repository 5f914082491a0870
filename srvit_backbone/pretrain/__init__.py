"""ImageNet pretraining, fine-tuning and distillation on timm's parts; tools/train_imagenet.py."""
