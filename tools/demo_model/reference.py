# The same weights in Hugging Face transformers, float32 on the CPU: the judge of everything else.
# SPDX-License-Identifier: Apache-2.0
import torch


def _common(c):
    return dict(vocab_size=c.n_vocab, hidden_size=c.d_model, num_hidden_layers=c.n_layers, num_attention_heads=c.n_heads,
                num_key_value_heads=c.n_kv_heads, max_position_embeddings=c.n_ctx, rms_norm_eps=c.eps, tie_word_embeddings=False,
                num_experts=c.n_experts, num_experts_per_tok=c.n_experts_used, moe_intermediate_size=c.d_ff, use_cache=False,
                attn_implementation="eager", experts_implementation="eager")


def reference_model(c, weights):
    if c.is_hybrid:
        from transformers import Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig
        share = c.n_rot / c.head_dim
        config = Qwen3_5MoeTextConfig(
            **_common(c), head_dim=c.head_dim, partial_rotary_factor=share,
            rope_parameters={"rope_type": "default", "rope_theta": c.rope_theta, "partial_rotary_factor": share,
                             "mrope_section": list(c.rope_sections), "mrope_interleaved": True},
            layer_types=["linear_attention" if c.is_linear(i) else "full_attention" for i in range(c.n_layers)],
            linear_num_key_heads=c.n_key_heads, linear_num_value_heads=c.n_value_heads, linear_key_head_dim=c.linear_head_dim,
            linear_value_head_dim=c.linear_head_dim, linear_conv_kernel_dim=c.conv_kernel,
            shared_expert_intermediate_size=c.d_ff_shared)
        model = Qwen3_5MoeForCausalLM(config)
    else:
        from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM
        config = Qwen3MoeConfig(**_common(c), head_dim=c.head_dim, intermediate_size=c.d_ff * c.n_experts_used, norm_topk_prob=True,
                                rope_parameters={"rope_type": "default", "rope_theta": c.rope_theta})
        model = Qwen3MoeForCausalLM(config)
    model.load_state_dict(weights)  # strict: the names and shapes of model.py are those of transformers
    return model.float().eval()


@torch.no_grad()
def reference_logits(model, ids):
    """[n, n_vocab] for a list of ids."""
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()
