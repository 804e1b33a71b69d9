"""Refusals in the words of providers, servers and proxies, and what is right for each."""

import json

CHAT, RESPONSES, MESSAGES = "chat", "responses", "messages"


def openai(message, code=None, param=None, kind="invalid_request_error"):
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def anthropic(message, kind="invalid_request_error"):
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def vllm(message, code=400):
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": code}


def google(message, status="INVALID_ARGUMENT", code=400, **more):
    return [{"error": {"code": code, "message": message, "status": status, **more}}]


def validation(*places, said="Extra inputs are not permitted"):
    return {
        "detail": [
            {"type": "extra_forbidden", "loc": ["body", *place], "msg": said, "input": 1} for place in places
        ]
    }


def within(inner, outer="litellm.BadRequestError: SomeException - "):
    return openai(outer + json.dumps(inner) + ". Received Model Group=m", code="400", kind=None)


def routed(inner, status=400):
    return {
        "error": {
            "message": "Provider returned error",
            "code": status,
            "metadata": {"raw": json.dumps(inner), "provider_name": "P"},
        }
    }


SEED = {"temperature": 0.0, "max_tokens": 16000}
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
TOOLS = {"tools": [TOOL]}
FORCED = {**TOOLS, "tool_choice": "required"}
NAMED = {**TOOLS, "tool_choice": {"type": "function", "function": {"name": "bash"}}}

# status, body, what the request holds, protocol, and what the change is to be (its record).
ABILITIES = [
    (400, openai("Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.", "unsupported_value", "temperature"), SEED, CHAT, {"dropped": ["temperature"]}),
    (400, openai("Unsupported parameter: 'temperature' is not supported with this model.", None, "temperature"), {"temperature": 0.3}, RESPONSES, {"dropped": ["temperature"]}),
    (400, anthropic("`temperature` is deprecated for this model."), SEED, MESSAGES, {"dropped": ["temperature"]}),
    (400, anthropic("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode."), {**SEED, "thinking": {"type": "enabled", "budget_tokens": 1024}}, MESSAGES, {"dropped": ["temperature"]}),
    (400, anthropic("`temperature` and `top_p` cannot both be specified for this model. Please use only one."), {**SEED, "top_p": 0.9}, MESSAGES, {"dropped": ["top_p"]}),
    (400, anthropic("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled."), {"top_p": 0.5}, MESSAGES, {"dropped": ["top_p"]}),
    (400, within({"type": "error", "error": {"type": "invalid_request_error", "message": "temperature and top_p cannot both be specified for this model."}}), {**SEED, "top_p": 0.9}, CHAT, {"dropped": ["top_p"]}),
    (400, {"error": "litellm.UnsupportedParamsError: gpt-x doesn't support temperature=0.1 while reasoning is active. Only temperature=1 is supported unless reasoning_effort resolves to 'none'."}, {"temperature": 0.1, "reasoning_effort": "low"}, CHAT, {"dropped": ["temperature"]}),
    (400, openai("invalid temperature: only 1 is allowed for this model"), SEED, CHAT, {"dropped": ["temperature"]}),
    (422, {"error": "Input validation error: `temperature` must be strictly positive", "error_type": "validation"}, SEED, CHAT, {"dropped": ["temperature"]}),
    (400, openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "unsupported_parameter", "max_tokens"), SEED, CHAT, {"renamed": {"max_tokens": "max_completion_tokens"}}),
    (422, validation(("max_completion_tokens",)), {"max_completion_tokens": 9}, CHAT, {"renamed": {"max_completion_tokens": "max_tokens"}}),
    (400, {"detail": "Unsupported parameter: max_output_tokens"}, {"max_output_tokens": 9}, RESPONSES, {"dropped": ["max_output_tokens"]}),
    (422, {"object": "error", "message": validation(("stream_options",)), "type": "invalid_request_error", "code": None}, {"stream": True, "stream_options": {"include_usage": True}}, CHAT, {"dropped": ["stream_options"]}),
    (422, {"object": "error", "message": {"detail": validation(("parallel_tool_calls",))["detail"]}, "type": "invalid_request_error"}, {**TOOLS, "parallel_tool_calls": False}, CHAT, {"dropped": ["parallel_tool_calls"]}),
    (400, vllm("[{'type': 'extra_forbidden', 'loc': ('body', 'store'), 'msg': 'Extra inputs are not permitted', 'input': False}]"), {"store": False}, CHAT, {"dropped": ["store"]}),
    (400, google('Invalid JSON payload received. Unknown name "parallel_tool_calls": Cannot find field.'), {**TOOLS, "parallel_tool_calls": True}, CHAT, {"dropped": ["parallel_tool_calls"]}),
    (400, google("Parallel tool calls are not supported."), {**TOOLS, "parallel_tool_calls": True}, CHAT, {"dropped": ["parallel_tool_calls"]}),
    (400, {"message": "parallel_tool_calls=False is not supported by this model.", "type": "invalid_request_error", "param": "parallel_tool_calls", "code": "wrong_api_format"}, {**TOOLS, "parallel_tool_calls": False}, CHAT, {"dropped": ["parallel_tool_calls"]}),
    (400, {"code": "Client specified an invalid argument", "error": "Argument not supported on this model: frequencyPenalty"}, {"frequency_penalty": 0.1}, CHAT, {"dropped": ["frequency_penalty"]}),
    (400, {"code": "Client specified an invalid argument", "error": "Argument not supported on this model: stop"}, {"stop": ["x"]}, CHAT, {"dropped": ["stop"]}),
    (400, {"code": "Client specified an invalid argument", "error": "Model grok-9 does not support parameter reasoningEffort."}, {"reasoning_effort": "low"}, CHAT, {"dropped": ["reasoning_effort"]}),
    (400, {"code": "invalid-argument", "error": "Model grok-9 does not support parameter reasoningEffort."}, {"reasoning": {"effort": "low", "summary": "auto"}}, RESPONSES, {"dropped": ["reasoning.effort"]}),
    (400, openai("Unrecognized request argument supplied: thinking"), {"thinking": {"type": "disabled"}}, CHAT, {"dropped": ["thinking"]}),
    (400, openai("Unrecognized request arguments supplied: repetition_penalty, top_k"), {"repetition_penalty": 1.1, "top_k": 5}, CHAT, {"dropped": ["repetition_penalty", "top_k"]}),
    (400, openai("property 'store' is unsupported, did you mean 'stop'?"), {"store": True, "stop": ["x"]}, CHAT, {"dropped": ["store"]}),
    (400, openai("Unknown parameter: 'min_p'.", "unknown_parameter", "min_p"), {"min_p": 0.1}, CHAT, {"dropped": ["min_p"]}),
    (400, {"message": "Malformed input request: #: extraneous key [top_k] is not permitted#: extraneous key [seed] is not permitted, please reformat your input and try again."}, {"top_k": 4, "seed": 1}, MESSAGES, {"dropped": ["seed", "top_k"]}),
    (400, openai("Invalid value: 'flex'. Supported values are: 'auto', 'default'.", "invalid_value", "service_tier"), {"service_tier": "flex"}, CHAT, {"dropped": ["service_tier"]}),
    (400, openai("Unsupported value: 'low' is not supported with the 'gpt-x' model. Supported values are: 'medium'.", "unsupported_value", "text.verbosity"), {"text": {"verbosity": "low"}}, RESPONSES, {"dropped": ["text.verbosity"]}),
    (400, openai("Unsupported parameter: 'verbosity' is not supported with this model.", "unsupported_parameter", "verbosity"), {"verbosity": "low"}, CHAT, {"dropped": ["verbosity"]}),
    (400, openai("Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low', 'medium', and 'high'.", "unsupported_value", "reasoning_effort"), {"reasoning_effort": "minimal"}, CHAT, {"replaced": {"reasoning_effort=minimal": "low"}}),
    (400, openai("Function tools with reasoning_effort are not supported for gpt-x in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", None, "reasoning_effort"), TOOLS, CHAT, {"settings": {"reasoning_effort": "none"}}),
    (400, openai("Function tools with reasoning_effort are not supported for gpt-x in /v1/chat/completions. Please use /v1/responses instead.", None, "reasoning_effort"), {**TOOLS, "reasoning_effort": "low"}, CHAT, {"dropped": ["reasoning_effort"]}),
    (400, openai("registry.ollama.ai/library/gemma:7b does not support thinking", kind="api_error"), {"reasoning_effort": "low"}, CHAT, {"dropped": ["reasoning_effort"]}),
    (400, anthropic('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'), {"thinking": {"type": "enabled", "budget_tokens": 2000}}, MESSAGES, {"dropped": ["thinking.budget_tokens"], "replaced": {"thinking.type=enabled": "adaptive"}}),
    (400, anthropic("adaptive thinking is not supported on this model"), {"thinking": {"type": "adaptive"}}, MESSAGES, {"dropped": ["thinking"]}),
    (400, anthropic("thinking.adaptive.budget_tokens: Extra inputs are not permitted"), {"thinking": {"type": "adaptive", "budget_tokens": 9}}, MESSAGES, {"dropped": ["thinking.budget_tokens"]}),
    (400, anthropic("context_management: Extra inputs are not permitted"), {"context_management": {}}, MESSAGES, {"dropped": ["context_management"]}),
    (400, openai("Thinking mode does not support this tool_choice"), FORCED, CHAT, {"replaced": {"tool_choice": "auto"}}),
    (400, {"message": "deepseek-reasoner does not support this tool_choice"}, {**TOOLS, "tool_choice": "auto"}, CHAT, {"dropped": ["tool_choice"]}),
    (400, openai("<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode", "invalid_parameter_error"), NAMED, CHAT, {"replaced": {"tool_choice": "auto"}}),
    (400, {"message": "Unsupported tool_choice: type='function'. Expected 'auto' or 'none'.", "type": "invalid_request_error", "param": "tool_choice", "code": "wrong_api_format"}, NAMED, CHAT, {"replaced": {"tool_choice": "auto"}}),
    (404, {"error": {"message": "No endpoints found that support the provided 'tool_choice' value. To learn more about provider routing, visit: https://x", "code": 404}}, FORCED, CHAT, {"replaced": {"tool_choice": "auto"}}),
    (400, anthropic("Thinking may not be enabled when tool_choice forces tool use."), {"tools": [{"name": "b", "input_schema": {}}], "tool_choice": {"type": "any"}}, MESSAGES, {"replaced": {"tool_choice": {"type": "auto"}}}),
    (400, openai("Your organization must be verified to stream this model. Please go to the settings.", "unsupported_value", "stream"), {"stream": True}, CHAT, {"no_stream": True}),
    (400, routed(openai("Your organization must be verified to stream this model.", "unsupported_value", "stream")), {"stream": True}, CHAT, {"no_stream": True}),
    (500, {"error": "This model does not support streaming"}, {"stream": True}, CHAT, {"no_stream": True}),
    (400, {"error": {"code": "invalid_parameter_error", "message": "This model only support stream mode, please enable the stream parameter to access the model."}}, {}, CHAT, {"only_stream": True}),
    (400, openai("Requests with max_tokens > 4096 must have stream=true"), {}, CHAT, {"only_stream": True}),
    (400, openai("parameter.enable_thinking must be set to false for non-streaming calls", "invalid_parameter_error"), {}, CHAT, {"settings": {"enable_thinking": False}}),
    (400, openai("The `reasoning_content` in the thinking mode must be passed back to the API."), {}, CHAT, {"settings": {"thinking": {"type": "disabled"}}}),
    (400, openai("developer is not one of ['system', 'assistant', 'user', 'tool', 'function'] - 'messages.['0].role'"), {"messages": [{"role": "developer", "content": "x"}]}, CHAT, {"roles": {"developer": "system"}}),
    (400, openai("invalid parameter 'messages[0].role': invalid role 'developer', must be one of: system, user, assistant, tool"), {"messages": [{"role": "developer", "content": "x"}]}, CHAT, {"roles": {"developer": "system"}}),
    (422, {"error": "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool` at line 1 column 40"}, {"messages": [{"role": "developer", "content": "x"}]}, CHAT, {"roles": {"developer": "system"}}),
    (400, vllm("System role not supported"), {"messages": [{"role": "system", "content": "x"}]}, CHAT, {"roles": {"system": "user", "developer": "user"}}),
    (400, openai("Unsupported value: 'messages[0].role' does not support 'system' with this model.", "unsupported_value", "messages[0].role"), {"messages": [{"role": "system", "content": "x"}]}, CHAT, {"roles": {"system": "user", "developer": "user"}}),
    (400, google("Developer instruction is not enabled for models/gemma-9"), {"messages": [{"role": "system", "content": "x"}]}, CHAT, {"roles": {"system": "user", "developer": "user"}}),
    (400, anthropic("messages.0.content.0.text.cache_control: Extra inputs are not permitted"), {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}]}, MESSAGES, {"dropped": ["**.cache_control"]}),
    (422, validation(("messages", 0, "user", "content", "list[union]", 0, "text", "cache_control")), {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}]}, CHAT, {"dropped": ["**.cache_control"]}),
    (400, anthropic("invalid beta flag"), {}, MESSAGES, {"dropped_headers": ["anthropic-beta"]}),
    (400, anthropic("Unexpected value(s) `effort-2025-11-24` for the `anthropic-beta` header."), {}, MESSAGES, {"dropped_headers": ["anthropic-beta"]}),
    (422, validation(("messages", 0, "assistant", "reasoning_content")), {"messages": [{"role": "assistant", "content": "x", "reasoning_content": "y"}]}, CHAT, {"dropped": ["messages[].reasoning_content"]}),
    (400, openai("'messages.0' : for 'role:assistant' the following must be satisfied[('messages.0' : property 'reasoning_content' is unsupported)]"), {"messages": [{"role": "assistant", "content": "x", "reasoning_content": "y"}]}, CHAT, {"dropped": ["messages[].reasoning_content"]}),
    (422, {"message": "Tools with mixed values for 'strict' are not allowed.", "type": "invalid_request_error"}, {"tools": [{"type": "function", "function": {"name": "b", "strict": True}}]}, CHAT, {"dropped": ["tools[].function.strict"]}),
    (400, anthropic("tools.0.custom.strict: Extra inputs are not permitted"), {"tools": [{"name": "b", "strict": True, "input_schema": {}}]}, MESSAGES, {"dropped": ["tools[].strict"]}),
    (400, google("Invalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field."), {"tools": [{"type": "function", "function": {"name": "b", "parameters": {"type": "object", "additionalProperties": False}}}]}, CHAT, {"dropped": ["tools**.additionalProperties"]}),
    (400, openai("Encrypted content is not supported with this model.", None, "include"), {"include": ["reasoning.encrypted_content"]}, RESPONSES, {"dropped": ["include"]}),
    (400, openai("logprobs are not supported with reasoning models."), {"logprobs": True, "top_logprobs": 2}, CHAT, {"dropped": ["logprobs", "top_logprobs"]}),
    (400, openai("Unknown parameter: 'prompt_cache_retention'", "unknown_parameter", "prompt_cache_retention"), {"prompt_cache_retention": "24h"}, RESPONSES, {"dropped": ["prompt_cache_retention"]}),
    (400, openai("Unsupported parameter: safety_identifier"), {"safety_identifier": "x"}, RESPONSES, {"dropped": ["safety_identifier"]}),
    (400, {"error": {"message": "参数 logit_bias 不支持", "code": "1210"}}, {"logit_bias": {"1": 2}}, CHAT, {"dropped": ["logit_bias"]}),
    (501, {"detail": "presence_penalty is not implemented"}, {"presence_penalty": 0.5}, CHAT, {"dropped": ["presence_penalty"]}),
    (400, vllm("'messages.0.content' must be a string"), {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, CHAT, {"flat_content": True}),
    (400, {"error": {"message": "metadata: unrecognized field", "type": "invalid_request_error"}}, {"metadata": {"a": "b"}}, CHAT, {"dropped": ["metadata"]}),
    (400, {"error": {"message": "The 'user' parameter is not supported."}}, {"user": "abc"}, CHAT, {"dropped": ["user"]}),
]  # fmt: skip

# status, body, what the request holds, protocol, context, max_output, the limit that fits now.
SIZES = [
    (400, openai("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (1000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.", "context_length_exceeded", "messages"), {"max_tokens": 4000}, CHAT, 4096, None, 3096),
    (400, vllm("This model's maximum context length is 4096 tokens. However, you requested 5050 tokens (1000 in the messages, 50 in the functions, and 4000 in the completion)."), {"max_tokens": 4000}, CHAT, 4096, None, 3046),
    (400, vllm("This model's maximum context length is 4,097 tokens, however you requested 4,226 tokens (3,970 in your prompt; 256 for the completion)."), {"max_tokens": 256}, CHAT, 4097, None, 127),
    (400, vllm("'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum context length is 64001 tokens and your request has 24235 input tokens (64000 > 64001 - 24235)."), {"max_completion_tokens": 64000}, CHAT, 64001, None, 39766),
    (400, vllm("This model's maximum context length is 16384 tokens. However, you requested 16000 output tokens and your prompt contains at least 400 input tokens, for a total of at least 16400 tokens."), {"max_tokens": 16000}, CHAT, 16384, None, 8000),
    (400, anthropic("input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000, decrease input length or `max_tokens` and try again"), {"max_tokens": 16000}, MESSAGES, 200000, None, 10000),
    (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens and 1024 `max_new_tokens`", "error_type": "validation"}, {"max_tokens": 1024}, CHAT, 1512, None, 512),
    (400, {"object": "error", "message": "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested a total of 202941 tokens: 170941 tokens from the input messages and 32000 tokens for the completion.", "code": 400}, {"max_tokens": 32000}, CHAT, 202752, None, 31811),
    (400, {"error": {"message": "This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of text input, 131072 in the output).", "code": 400}}, {"max_tokens": 131072}, CHAT, 131072, None, 123188 - 157),
    (400, {"error": {"message": "This endpoint's maximum context length is 256000 tokens. However, you requested about 256493 tokens (194895 of text input, 10398 of tool input, 51200 in the output).", "code": 400}}, {"max_tokens": 51200}, CHAT, 256000, None, 50707 - 4105),
    (400, {"error": {"message": "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)", "type": "invalid_request_error"}}, {"max_tokens": 16000}, CHAT, 131072, None, 7072),
    (400, {"message": "Please reduce the length of the messages or completion. Current length is 9123 while limit is 8192", "code": "context_length_exceeded"}, {"max_tokens": 4000}, CHAT, 8192, None, 3069),
    (413, openai("Request too large for model `x` in organization `org` on tokens per minute (TPM): Limit 6000, Requested 16512, please reduce your message size and try again.", "rate_limit_exceeded", kind="tokens"), {"max_tokens": 16000}, CHAT, 6000, None, 5488),
    (400, openai("max_tokens is too large: 16000. This model supports at most 4096 completion tokens, whereas you provided 16000.", None, "max_tokens"), {"max_tokens": 16000}, CHAT, None, 4096, 4096),
    (400, {"error": {"message": "Param Incorrect", "param": "max_tokens is too large: 16000. This model supports at most 4096 completion tokens, whereas you provided 16000.", "code": "400"}}, {"max_tokens": 16000}, CHAT, None, 4096, 4096),
    (400, anthropic("max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for claude-x"), {"max_tokens": 16000}, MESSAGES, None, 8192, 8192),
    (400, openai("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "invalid_request_error"), {"max_tokens": 16000}, CHAT, None, 8192, 8192),
    (400, openai("<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]", "invalid_parameter_error"), {"max_tokens": 16000}, CHAT, None, 8192, 8192),
    (400, {"error": {"code": "InvalidParameter", "message": "The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 12288, but got 16000 instead.", "param": "max_completion_tokens"}}, {"max_completion_tokens": 16000}, CHAT, None, 12288, 12288),
    (400, openai("Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 8192, but got 16000 instead.", "integer_above_max_value", "max_output_tokens"), {"max_output_tokens": 16000}, RESPONSES, None, 8192, 8192),
    (400, openai("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model"), {"max_tokens": 16000}, CHAT, None, 8192, 8192),
    (400, {"message": "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096."}, {"max_tokens": 16000}, CHAT, None, 4096, 4096),
    (416, {"error": "max_completion_tokens is limited to 8192 for this model"}, {"max_completion_tokens": 16000}, CHAT, None, 8192, 8192),
    (400, within(openai("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (1000 in the messages, 4000 in the completion).")), {"max_tokens": 4000}, CHAT, 4096, None, 3096),
]  # fmt: skip

ACCOUNT = [
    (400, openai("Access denied, please make sure your account is in good standing.", "Arrearage", kind="Arrearage"), False),
    (400, google("User location is not supported for the API use.", "FAILED_PRECONDITION"), False),
    (400, openai("Your organization must be verified to use the model `gpt-6-luna`. Please verify it in the settings."), False),
    (400, google("API key expired. Please renew the API key.", details=[{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}]), True),
    (400, google("API Key not found. Please pass a valid API key.", details=[{"reason": "API_KEY_INVALID"}]), True),
    (400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***cd. You can obtain an API key from https://x."}, True),
    (401, openai("Incorrect API key provided: abc.", "invalid_api_key"), True),
    (401, anthropic("invalid x-api-key", "authentication_error"), True),
    (401, "Unauthorized", True),
    (401, "<html><head><title>401 Authorization Required</title></head></html>", True),
    (401, {"error": {"code": "1000", "message": "身份验证失败。"}}, True),
    (401, {"statusCode": 401, "message": "Access denied due to invalid subscription key or wrong API endpoint."}, True),
    (403, anthropic("Your API key does not have permission to use the specified resource.", "permission_error"), True),
    (403, google("Permission denied: Consumer 'api_key:abc' has been suspended.", "PERMISSION_DENIED", 403, details=[{"reason": "CONSUMER_SUSPENDED"}]), True),
    (403, {"message": "The security token included in the request is expired", "__type": "ExpiredTokenException"}, True),
    (403, {"Message": "You don't have access to the model with the specified model ID."}, False),
    (400, {"message": "Invocation of model ID anthropic.claude-x with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model."}, False),
    (404, {"message": "Model use case details have not been submitted for this account. Fill out the form."}, False),
    (400, {"message": "The provided model identifier is invalid."}, False),
    (402, openai("Insufficient Balance", "invalid_request_error", kind="unknown_error"), False),
    (400, openai("Insufficient Balance", "invalid_request_error", kind="unknown_error"), False),
    (500, anthropic("insufficient balance (1008)", "api_error"), False),
    (429, {"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}}, False),
    (429, {"error": {"code": "1113", "message": "Insufficient balance or no resource package. Please recharge."}}, False),
    (429, {"error": {"code": "1311", "message": "Your current subscription plan does not yet include access to GLM-9"}}, False),
    (403, {"code": 30011, "message": "The selected model requires paid balance. Your paid balance is insufficient. Please top up and try again.", "data": None}, False),
    (402, {"error": {"message": "This request requires more credits, or fewer max_tokens. You requested up to 16000 tokens, but can only afford 1234. To increase, visit the settings and upgrade", "code": 402}}, False),
    (429, openai("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota", kind="insufficient_quota"), False),
    (429, openai("Your account abc <ak-1> is suspended, please check your plan and billing details", kind="exceeded_current_quota_error"), False),
    (400, anthropic("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."), False),
    (400, anthropic("You have reached your specified API usage limits. You will regain access on 2026-12-01."), False),
    (400, anthropic("This organization has been disabled."), False),
    (403, {"code": "The caller does not have permission to execute the specified operation", "error": "Your team has either used all available credits or reached its monthly spending limit."}, False),
    (403, {"error": {"code": "AllocationQuota.FreeTierOnly", "message": "The free tier of the model has been exhausted."}}, False),
    (400, {"error": {"message": "Budget has been exceeded! Current cost: 1.2, Max budget: 1.0", "type": "budget_exceeded", "code": "400"}}, False),
    (412, {"error": {"message": "Account abc is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices."}}, False),
    (403, openai("Country, region, or territory not supported", "unsupported_country_region_territory", kind="request_forbidden"), False),
    (400, openai("The model `x` requires terms acceptance. Please have the org admin accept the terms", "model_terms_required"), False),
    (403, {"error": {"message": "Access terminated. Review our Community Guidelines or contact support.", "type": "access_terminated_error"}}, False),
    (404, openai("The model `x` does not exist or you do not have access to it.", "model_not_found"), False),
    (404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait."}}, False),
    (404, anthropic("model: claude-nope", "not_found_error"), False),
    (404, {"error": {"message": "model 'llama9' not found, try pulling it first", "type": "api_error"}}, False),
    (404, {"error": {"message": "No models loaded. Please load a model in the developer page", "type": "invalid_request_error"}}, False),
    (400, {"error": {"message": "/chat/completions: Invalid model name passed in model=x. Call `/v1/models` to view available models for your key.", "type": "invalid_request_error", "code": "400"}}, False),
    (400, {"error": {"message": "The requested model 'x/y' is not supported by any provider you have enabled.", "code": "model_not_supported"}}, False),
    (400, openai("The model `gemma2-9b-it` has been decommissioned and is no longer supported.", "model_decommissioned"), False),
    (400, {"error": {"message": "x/y is not a valid model ID", "code": 400}}, False),
    (404, google("Publisher Model `projects/p/models/x` was not found or your project does not have access to it.", "NOT_FOUND", 404), False),
    (404, openai("This is not a chat model and thus not supported in the v1/chat/completions endpoint.", None, "model"), False),
    (400, openai("The chatCompletion operation does not work with the specified model, x.", "OperationNotSupported"), False),
    (404, "404 page not found", False),
    (404, {"detail": "Not Found"}, False),
    (404, {"error": {"code": "404", "message": "Resource not found"}}, False),
    (404, "<html><head><title>404 Not Found</title></head><body><center>nginx</center></body></html>", False),
    (405, {"detail": "Method Not Allowed"}, False),
    (200, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}, False),
    (400, vllm('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'), False),
    (400, openai("registry.ollama.ai/library/gemma:7b does not support tools", kind="api_error"), False),
    (500, {"error": {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}}, False),
    (500, {"code": 500, "message": "Unsupported param: tools", "type": "server_error"}, False),
    (404, {"error": {"message": "No endpoints found that support tool use. To learn more about provider routing, visit: https://x", "code": 404}}, False),
    (400, within({"error": {"message": "Function calling is not enabled for this model", "code": 400}}), False),
    (404, {"error": {"message": "No endpoints found matching your data policy (Free model publication).", "code": 404}}, False),
    (407, "Proxy Authentication Required", False),
    (302, "", False),
    (451, {"error": {"message": "Unavailable"}}, False),
    (429, google("You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, model: gemini-9 Please retry in 38.8s.", "RESOURCE_EXHAUSTED", 429), False),
]  # fmt: skip

# status, body, headers, seconds, overload
PASSING = [
    (429, google("You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 125000 Please retry in 15.5s.", "RESOURCE_EXHAUSTED", 429), {}, 15.5, True),
    (429, google("Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED", 429, details=[{"@type": "RetryInfo", "retryDelay": "38s"}]), {}, 38.0, True),
    (429, google("Quota exceeded for aiplatform.googleapis.com/generate_content_requests_per_minute_per_project.", "RESOURCE_EXHAUSTED", 429), {}, None, True),
    (429, openai("Rate limit exceeded: free-models-per-day", "429"), {"Retry-After": "3600"}, 3600.0, True),
    (429, openai("Rate limit reached for model `x` on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38.016s. Need more tokens? Upgrade to Dev Tier today at the billing page", "rate_limit_exceeded", kind="tokens"), {}, 578.016, True),
    (429, openai("Your account reached max request: 3, please try again after 1 seconds", kind="rate_limit_reached_error"), {}, 1.0, True),
    (429, anthropic("This request would exceed your organization's rate limit of 40,000 input tokens per minute.", "rate_limit_error"), {"retry-after": "12"}, 12.0, True),
    (429, {"message": "Requests rate limit exceeded", "type": "rate_limited", "code": "1300"}, {}, None, True),
    (429, {"error": {"code": "Throttling.AllocationQuota", "message": "Allocated quota exceeded, please increase your quota limit."}}, {}, None, True),
    (429, {"error": {"code": "1302", "message": "您当前使用该API的并发数过高，请降低并发"}}, {}, None, True),
    (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, {}, None, True),
    (503, {"error": "Server overloaded, please retry shortly (ref: 1)"}, {}, None, True),
    (529, anthropic("Overloaded", "overloaded_error"), {}, None, True),
    (200, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, {}, None, True),
    (0, {"error": {"code": "server_is_overloaded", "message": "Our servers are overloaded. Please try again later."}}, {}, None, True),
    (0, {"code": "slow_down", "message": "Please slow down."}, {}, None, True),
    (0, {"error": {"code": 502, "message": "Upstream error from P"}}, {}, None, False),
    (400, {"message": "The model is currently overloaded. Please try again later."}, {}, None, True),
    (404, {"error": "Model is loading, try again in 20 s"}, {}, 20.0, True),
    (424, {"error": "Model too busy, unable to get response", "error_type": "overloaded"}, {}, None, True),
    (500, openai("The server had an error while processing your request.", kind="server_error"), {}, None, False),
    (500, {"object": "error", "message": "EngineDeadError: EngineCore encountered an issue", "code": 500}, {}, None, False),
    (502, "<html><head><title>502 Bad Gateway</title></head></html>", {}, None, False),
    (524, "error code: 524", {}, None, False),
    (503, {"error": {"message": "no slot: context size exceeded"}}, {}, None, True),
    (429, {"error": {"message": "Too many tokens, please wait"}}, {}, None, True),
    (429, within({"error": {"message": "Service tier capacity exceeded for this model.", "type": "service_tier_capacity_exceeded", "code": "3505"}}), {}, None, True),
    (429, {"error": {"message": "No deployments available for selected model, Try again in 5 seconds.", "type": "None"}}, {}, 5.0, True),
    (409, openai("Conflict"), {}, None, False),
]  # fmt: skip

SINGLE = [
    (400, openai("The response was filtered due to the prompt triggering the content management policy.", "content_filter", "prompt", None), {}, "content_filter"),
    (400, {"error": {"message": "x", "code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, {}, "content_filter"),
    (400, openai("Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"), {}, "content_filter"),
    (0, {"error": {"code": "invalid_prompt", "message": "Limited access to this content for safety reasons."}}, {}, "content_filter"),
    (400, anthropic("Output blocked by content filtering policy"), {}, "content_filter"),
    (400, openai("<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content.", "data_inspection_failed", None, "data_inspection_failed"), {}, "content_filter"),
    (500, "Failed to invoke model. message: Input data may contain inappropriate content.", {}, "content_filter"),
    (400, {"error": {"code": 400, "message": "The request was rejected because it was considered high risk", "param": "prompt", "type": "content_filter"}}, {}, "content_filter"),
    (400, openai("Content Exists Risk", "invalid_request_error"), {}, "content_filter"),
    (400, {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}}, {}, "content_filter"),
    (403, {"error": {"message": "Your chosen model requires moderation and your input was flagged", "code": 403, "metadata": {"reasons": ["violence"]}}}, {}, "content_filter"),
    (403, {"code": "forbidden", "error": "Content violates usage guidelines."}, {}, "content_filter"),
    (400, google("The prompt is blocked due to: PROHIBITED_CONTENT"), {}, "content_filter"),
    (403, "<!DOCTYPE html><title>Attention</title>You are blocked", {}, "blocked_by_firewall"),
    (403, "<html><head><title>403 Forbidden</title></head></html>", {}, "blocked_by_firewall"),
    (403, "error code: 1010", {}, "blocked_by_firewall"),
    (406, "<head><title>Not Acceptable!</title></head>An appropriate representation could not be found. Mod_Security", {}, "blocked_by_firewall"),
    (200, "<html><body>The requested URL was rejected. Please consult with your administrator.</body></html>", {}, "blocked_by_firewall"),
    (413, openai("Payload too large"), {}, "context_length_exceeded"),
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>", {}, "context_length_exceeded"),
    (400, anthropic("prompt is too long: 205000 tokens > 200000 maximum"), {"max_tokens": 16000}, "context_length_exceeded"),
    (413, anthropic("Request exceeds the maximum size", "request_too_large"), {}, "context_length_exceeded"),
    (400, openai("This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens.", "context_length_exceeded"), {"max_tokens": 16000}, "context_length_exceeded"),
    (400, vllm("This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion)."), {"max_tokens": 10000}, "context_length_exceeded"),
    (400, {"error": {"code": 400, "message": "request (14429 tokens) exceeds the available context size (8192 tokens), try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 14429, "n_ctx": 8192}}, {"max_tokens": 4000}, "context_length_exceeded"),
    (400, {"error": "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096)."}, {"max_tokens": 4000}, "context_length_exceeded"),
    (400, {"error": "Trying to keep the first 6547 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}, {"max_tokens": 4000}, "context_length_exceeded"),
    (400, google("The input token count (81881) exceeds the maximum number of tokens allowed (65536)."), {"max_tokens": 4000}, "context_length_exceeded"),
    (400, {"message": "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).", "code": 400}, {"max_tokens": 4000}, "context_length_exceeded"),
    (422, {"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 4545"}, {"max_tokens": 4000}, "context_length_exceeded"),
    (400, openai("Your input exceeds the context window of this model.", "context_length_exceeded"), {"max_tokens": 4000}, "context_length_exceeded"),
    (400, {"message": "Input is too long for requested model."}, {}, "context_length_exceeded"),
    (400, openai("invalid params, context window exceeds limit (2013)", kind="bad_request_error"), {}, "context_length_exceeded"),
    (400, openai("max_tokens must be at least 1, got -123"), {"max_tokens": 4000}, "context_length_exceeded"),
    (500, {"error": "input length exceeds maximum context length"}, {}, "context_length_exceeded"),
    (429, openai("Request too large for gpt-x on tokens per min (TPM): Limit 3, Requested 4.", "rate", kind="tokens"), {}, "context_length_exceeded"),
    (400, openai("Range of input length should be [1, 98304]"), {}, "context_length_exceeded"),
    (400, openai("invalid params, invalid function arguments json string, tool_call_id: call_1 (2013)", kind="bad_request_error"), {}, "invalid_history"),
    (400, google("Function call is missing a thought_signature in functionCall parts."), {}, "invalid_history"),
]  # fmt: skip

SAMPLED = [
    (400, openai("Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.", "tool_use_failed")),
    (400, openai("tool call validation failed: attempted to call tool 'x' which was not in request.tools", "tool_use_failed")),
    (400, openai("Parsing failed. The model generated output that could not be parsed.", "output_parse_failed")),
    (400, openai("Failed to generate JSON. Please adjust your prompt.", "json_validate_failed")),
    (400, openai("Failed to parse tool call arguments as JSON", None)),
    (500, {"error": {"code": 500, "message": "Failed to parse input at pos 0: <tool_call>", "type": "server_error"}}),
    (500, {"error": "error parsing tool call: raw='{\"input\":\"x\"}]', err=invalid character ']' after top-level value"}),
    (500, {"error": {"message": "unexpected tokens remaining in message header: Some(\"to=functions.web\")", "type": "InternalServerError", "code": 500}}),
    (200, {"error": {"message": "HarmonyError('Unexpected token 12606 while expecting start token 200006')", "code": 400}}),
    (0, {"error": {"message": "MALFORMED_FUNCTION_CALL", "code": 500}}),
    (500, vllm("Could not parse the model's tool call", 500)),
]  # fmt: skip

ASKED = [
    (422, openai("tools.0.name: String should match pattern '^[a-z]+$'"), {}, CHAT),
    (400, openai("Missing required parameter: 'messages'.", "missing_required_parameter", "messages"), {}, CHAT),
    (400, openai("Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.", None, "messages.[1].role"), {}, CHAT),
    (400, anthropic("messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."), {}, MESSAGES),
    (400, openai("No tool output found for function call call_1.", None, "input"), {}, RESPONSES),
    (400, openai("Invalid schema for function 'bash': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.", "invalid_function_parameters", "tools[0].function.parameters"), {}, CHAT),
    (400, anthropic("messages: at least one message is required"), {}, MESSAGES),
    (400, openai("Error while downloading the image: invalid URL", "invalid_image_url"), {}, CHAT),
    (400, anthropic("Could not process image"), {}, MESSAGES),
    (400, anthropic("temperature: must be between 0 and 1"), {"temperature": 1.7}, MESSAGES),
    (400, openai("Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.", "decimal_above_max_value", "temperature"), {"temperature": 3}, CHAT),
    (400, openai("Invalid type for 'temperature': expected a decimal, but got a string instead.", "invalid_type", "temperature"), {"temperature": "hot"}, CHAT),
    (400, openai("temperature must be between 0 and 1"), {"temperature": 1.7}, CHAT),
    (400, anthropic("`max_tokens` must be greater than `thinking.budget_tokens`."), {"max_tokens": 100, "thinking": {"type": "enabled", "budget_tokens": 2000}}, MESSAGES),
    (400, openai("Unexpected role 'user' after role 'tool'", "3230", kind="invalid_request_message_order"), {}, CHAT),
    (400, anthropic("A maximum of 4 blocks with cache_control may be provided. Found 5."), {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}]}, MESSAGES),
    (400, openai("We could not parse the JSON body of your request."), {}, CHAT),
    (404, openai("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."), {}, RESPONSES),
    (400, openai("no tool output found for call insufficient_quota"), {"messages": [{"role": "tool", "tool_call_id": "insufficient_quota", "content": "x"}]}, CHAT),
    (400, openai("Invalid value: 'Your credit balance is too low'. Supported values are: 'system', 'user'.", "invalid_value", "messages[0].role"), {"messages": [{"role": "Your credit balance is too low", "content": "x"}]}, CHAT),
]  # fmt: skip

IMAGE = {
    "messages": [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}
    ]
}
UNABLE = [
    (400, openai("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.", None, "response_format"), {"response_format": {"type": "json_schema"}}, CHAT),
    (400, openai("This response_format type is unavailable now"), {"response_format": {"type": "json_schema"}}, CHAT),
    (400, openai("Structured outputs are not supported by this model"), {"text": {"format": {"type": "json_schema"}}}, RESPONSES),
    (422, validation(("response_format",)), {"response_format": {"type": "json_object"}}, CHAT),
    (400, openai("'n' : number must be at most 1"), {"n": 3}, CHAT),
    (400, openai("Only n = 1 is supported."), {"n": 2}, CHAT),
    (400, openai("this model does not support image input"), IMAGE, CHAT),
    (400, openai("Unsupported content part type for text-only server: image_url"), IMAGE, CHAT),
    (404, {"error": {"message": "No endpoints found that support image input", "code": 404}}, IMAGE, CHAT),
    (500, {"error": {"message": "image input is not supported - hint: you may need to provide the mmproj", "code": 500}}, IMAGE, CHAT),
    (400, vllm("At most 0 image(s) may be provided in one prompt."), IMAGE, CHAT),
    (400, anthropic("This model does not support assistant message prefill. The conversation must end with a user message."), {}, MESSAGES),
    (400, openai("Your request was refused."), {}, CHAT),
    (400, "<html><head><title>400 Bad Request</title></head></html>", {}, CHAT),
    (422, {}, {}, CHAT),
    (400, {"error": {"message": "failed to parse grammar", "code": 400, "type": "invalid_request_error"}}, {}, CHAT),
]  # fmt: skip

ABILITIES += [
    (500, {"error": "create() got an unexpected keyword argument 'parallel_tool_calls'"}, {**TOOLS, "parallel_tool_calls": True}, CHAT, {"dropped": ["parallel_tool_calls"]}),
    (400, {"errors": [{"message": "Additional properties are not allowed ('logit_bias' was unexpected)"}]}, {"logit_bias": {}}, CHAT, {"dropped": ["logit_bias"]}),
    (400, {"error": 'json: unknown field "store"'}, {"store": True}, CHAT, {"dropped": ["store"]}),
    (422, "Failed to deserialize the JSON body into the target type: unknown field `top_k`, expected one of `model`, `messages`, `temperature`, `max_tokens` at line 1 column 90", {**SEED, "top_k": 4}, CHAT, {"dropped": ["top_k"]}),
    (400, {"error": {"message": "litellm.UnsupportedParamsError: x does not support parameters: ['reasoning_effort', 'seed'], for model=y. To drop these, set `litellm.drop_params=True`", "code": "400"}}, {"reasoning_effort": "low", "seed": 1}, CHAT, {"dropped": ["reasoning_effort", "seed"]}),
    (400, {"error": {"message": "litellm.UnsupportedParamsError: x does not support parameters: {'parallel_tool_calls': False}, for model=y", "code": "400"}}, {**TOOLS, "parallel_tool_calls": False}, CHAT, {"dropped": ["parallel_tool_calls"]}),
    (400, vllm("Stream options can only be defined when `stream=True`."), {"stream_options": {"include_usage": True}}, CHAT, {"dropped": ["stream_options"]}),
    (400, openai("Streaming with tools is not supported"), {**TOOLS, "stream": True}, CHAT, {"no_stream": True}),
    (400, openai("Tools are not supported in streaming mode."), {**TOOLS, "stream": True}, CHAT, {"no_stream": True}),
    (400, openai("max_tokens and max_completion_tokens cannot both be set"), {**SEED, "max_completion_tokens": 9}, CHAT, {"dropped": ["max_tokens"]}),
    (400, openai("The following parameters are not supported: temperature, top_p"), {**SEED, "top_p": 0.5}, CHAT, {"dropped": ["temperature", "top_p"]}),
    (400, openai("Unknown parameter `top_k`; allowed parameters are temperature, max_tokens"), {**SEED, "top_k": 5}, CHAT, {"dropped": ["top_k"]}),
    (400, "unsupported parameter: top_p", {**SEED, "top_p": 0.5}, CHAT, {"dropped": ["top_p"]}),
    (400, [{"error": {"code": 400, "message": "Penalty is not enabled for this model: frequency_penalty", "status": "INVALID_ARGUMENT"}}], {"frequency_penalty": 0.5}, CHAT, {"dropped": ["frequency_penalty"]}),
    (400, json.dumps({"error": json.dumps({"error": {"message": "Unsupported parameter: 'seed'"}})}), {"seed": 5}, CHAT, {"dropped": ["seed"]}),
    (400, "Error code: 400 - {'error': {'message': \"Unsupported parameter: 'seed' is not supported with this model.\", 'type': 'invalid_request_error', 'param': 'seed'}}", {"seed": 5}, CHAT, {"dropped": ["seed"]}),
]  # fmt: skip
SIZES += [
    (400, openai("max_tokens is too large for this model"), {"max_tokens": 16000}, CHAT, None, 8000, 8000),
]  # fmt: skip
ASKED += [
    (400, openai("Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 9 instead.", "array_above_max_length", "stop"), {"stop": list("abcdefghi")}, CHAT),
    (400, openai("Invalid value: 'super'. Supported values are: 'low', 'medium', and 'high'.", "invalid_value", "reasoning_effort"), {"reasoning_effort": "super"}, CHAT),
    (400, openai("Invalid schema for response_format 'x': 'additionalProperties' is required to be supplied and to be false.", None, "response_format"), {"response_format": {"type": "json_schema"}}, CHAT),
    (400, openai("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.", "integer_below_min_value", "max_output_tokens"), {"max_output_tokens": 1}, RESPONSES),
    (400, openai("max_tokens must be at least 1, got 0."), {"max_tokens": 0}, CHAT),
]  # fmt: skip
UNABLE += [
    (400, openai("Invalid value: 'custom'. Supported values are: 'function'.", "invalid_value", "tools[0].type"), {"tools": [{"type": "custom", "name": "x"}]}, RESPONSES),
]  # fmt: skip
ACCOUNT += [
    (200, {"base_resp": {"status_code": 1004, "status_msg": "login fail: Please carry the API secret key in the 'Authorization' field"}}, True),
    (200, {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, False),
    (200, {"code": 401, "msg": "token expired", "success": False}, True),
    (403, {"error": {"message": "用户额度不足, 剩余额度: ＄0.000000", "type": "new_api_error", "code": "insufficient_user_quota"}}, False),
    (401, {"error": {"message": "无效的令牌", "type": "new_api_error"}}, True),
    (400, {"error": {"message": "该模型不存在或者您没有访问权限", "code": "1211"}}, False),
    (400, {"message": "您的账户已欠费，请充值后重试"}, False),
    (400, vllm("Tools cannot be used because tool_call_parser is not set"), False),
]  # fmt: skip
SAMPLED += [
    (500, {"error": {"message": "XML syntax error on line 1: element <function> closed by </parameter>", "type": "api_error"}}),
    (500, {"error": "invalid character '}' looking for beginning of object key string"}),
    (400, vllm("1 validation error for list[FunctionDefinition] Invalid JSON: EOF while parsing")),
    (500, openai("The model produced invalid content. Consider modifying your prompt.", kind="model_error")),
    (424, {"message": "Model produced invalid sequence as part of ToolUse.", "__type": "ModelErrorException"}),
    (500, {"error": {"message": "Invalid diff: 'x' not found at start of 'y'", "code": 500}}),
]  # fmt: skip
PASSING += [
    (500, {"error": {"message": "当前分组上游负载已饱和，请稍后再试", "type": "upstream_error"}}, {}, None, True),
    (0, {"response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Rate limit reached. Please try again in 1.5s."}}}, {}, 1.5, True),
    (429, {"error": {"message": "The usage limit has been reached, resets in 3 hours", "type": "usage_limit_reached"}}, {}, 10800.0, True),
    (403, {"error": {"code": 403, "message": "Rate Limit Exceeded", "errors": [{"reason": "rateLimitExceeded"}]}}, {}, None, True),
]  # fmt: skip
