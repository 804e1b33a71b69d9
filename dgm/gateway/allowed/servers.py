"""Keys of servers that are compatible with OpenAI's protocols: vLLM, SGLang, llama.cpp, Ollama, OpenRouter and others.

The accepted keys shape the sampling or the form of an answer. These are refused, each with the reason:

- keys that reach out, run a program at the server, or name stored data
- keys that raise the output limit under another name
- keys with an unknown cost
"""

from typing import Any

from dgm.gateway.allowed import rules
from dgm.gateway.allowed.walk import (
    PROVIDER_SIDE,
    STORED,
    UNPRICED,
    KeyRules,
    Rule,
    asks_for_nothing,
    check_unlinked,
    split_words,
)
from dgm.gateway.translation import parsing
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject

LIMIT = "use the output limit of the protocol"
ACCOUNT = "the account is not the agent's"
SERVER = "it is for whoever runs the server"
PROGRAM = "it is a program for the server"
LENT = "the model is the one that was lent"
ROUTED = "the provider is the one of the run's configuration"


def _check_options(value: object, place: str) -> None:
    """Check Ollama's options, which have their own name for the output limit."""
    for key in ("num_predict", "n_predict"):
        if parsing.read_record(value, place).get(key) is not None:
            raise BadRequest(f"{place}.{key} is not offered here: {LIMIT}", "unsupported_parameter")


PASSED: dict[str, Rule | None] = {
    **dict.fromkeys(
        split_words(
            # Sampling.
            "top_k top_a min_p typical_p tfs tfs_z tail_free_sampling epsilon_cutoff eta_cutoff top_n_sigma"
            " repetition_penalty repeat_penalty repeat_last_n no_repeat_ngram_size length_penalty frequency_penalty"
            " presence_penalty penalize_nl dynatemp_range dynatemp_exponent smoothing_factor smoothing_curve"
            " mirostat mirostat_mode mirostat_tau mirostat_eta xtc_probability xtc_threshold dry_multiplier dry_base"
            " dry_allowed_length dry_penalty_last_n dry_sequence_breakers samplers sampler_seed min_keep do_sample"
            " seed random_seed temperature_last adaptive_target adaptive_decay repetition_detection"
            # Choice of tokens.
            " logit_bias logprobs top_logprobs prompt_logprobs n_probs post_sampling_probs min_tokens stop_token_ids"
            " stop_regex bad_words allowed_token_ids ignore_eos include_stop_str_in_output no_stop_trim"
            " skip_special_tokens spaces_between_special_tokens add_special_tokens add_generation_prompt"
            " continue_final_message truncate_prompt_tokens return_token_ids return_tokens_as_token_ids"
            # Form of the answer.
            " guided_regex guided_choice guided_grammar guided_decoding_backend guided_whitespace_pattern"
            " grammar regex ebnf result_format incremental_output"
            " parse_tool_calls disable_tool_validation tool_stream"
            # Thinking.
            " enable_thinking thinking thinking_budget thinking_token_budget thinking_budget_tokens preserve_thinking"
            " clear_thinking disable_reasoning think reasoning include_reasoning reasoning_format reasoning_split"
            " reasoning_budget separate_reasoning stream_reasoning return_reasoning prompt_mode"
            " reasoning_in_content thinking_forced_open"
            # Caching, and additional information in the answer.
            " cache_prompt cache_control cache_salt n_keep n_cache_reuse timings_per_token return_progress usage"
            " transforms context_length_exceeded_behavior prompt_truncate_len raw_output perf_metrics_in_response"
            " vl_high_resolution_images safe_prompt"
        )
    ),
    **dict.fromkeys(
        split_words("guided_json structured_outputs structural_tag json_schema format"), check_unlinked
    ),
    "chat_template_kwargs": rules.check_template,
    "options": _check_options,
}

REFUSED: dict[str, str] = {
    **dict.fromkeys(
        split_words(
            "web_search_options web_search search_parameters search_options search_settings enable_search"
            " enable_code_interpreter enable_text_image_mixed search_mode search_domain_filter google_search"
            " google_search_retrieval grounding url_context data_sources dataSources enhancements plugins connectors"
            " compound_custom mcp_servers server_tools"
        ),
        PROVIDER_SIDE,
    ),
    **dict.fromkeys(
        split_words("models route fallbacks fallback_models lora lora_path lora_request adapter_id"), LENT
    ),
    **dict.fromkeys(split_words("provider api_base base_url api_version custom_llm_provider region"), ROUTED),
    **dict.fromkeys(
        split_words("api_key organization project user_profile_id workspace_id access_programs"), ACCOUNT
    ),
    **dict.fromkeys(
        split_words(
            "preset prompt_id cached_content file_ids container session_params conversation_id prompt_cache_id"
        ),
        STORED,
    ),
    **dict.fromkeys(split_words("n_predict num_predict max_new_tokens max_length max_gen_len"), LIMIT),
    **dict.fromkeys(
        split_words(
            "chat_template logits_processors custom_logit_processor custom_params vllm_xargs extra_args"
        ),
        PROGRAM,
    ),
    **dict.fromkeys(
        split_words(
            "kv_transfer_params bootstrap_host bootstrap_port bootstrap_room mm_processor_kwargs media_io_kwargs"
            " id_slot slot_id priority request_id rid data_parallel_rank return_hidden_states keep_alive trace debug"
            " mock_response guardrails"
        ),
        SERVER,
    ),
    **dict.fromkeys(("extra_headers", "headers"), "the gateway's own headers are sent"),
    "extra_body": "what it holds is sent at the top of the body, where each key is checked",
    "background": "an answer is waited for",
    "deferred": "an answer is waited for",
    "best_of": "it is paid for answers that nobody sees; use n",
    "use_beam_search": "it is paid for answers that nobody sees; use n",
    "image_config": "answers are text",
    "image_generation": "answers are text",
    "audio": "answers are text",
    "speed": UNPRICED,
    "moderation": PROVIDER_SIDE,
}


def drop_empty_keys(body: JsonObject, keys: KeyRules) -> dict[str, Any]:
    """Return the body without keys that ask for nothing and that the provider may not know."""
    return {key: value for key, value in body.items() if key in keys.passed or not asks_for_nothing(value)}
