# What chat_template.jinja renders, as pieces of text that know whether the model says them (True), is
# told them (False), or is told them and must not learn them even a little (None). The
# corpus is made with this; chat_format_test.py shows that both agree letter by letter.
# SPDX-License-Identifier: Apache-2.0
import json

NO_THOUGHTS = "<think>\n\n</think>\n\n"
TOOL_RULES = '\n</tools>\n\nTo use one, answer with\n<tool_call>\n{"name": ..., "arguments": ...}\n</tool_call>'


def system_piece(text, tools=None):
    """The opening of a conversation: (text, said by the model)."""
    parts = [text] if text else []
    if tools:
        parts.append("# Tools\n\n<tools>" + "".join("\n" + json.dumps(t) for t in tools) + TOOL_RULES)
    return ("<|im_start|>system\n" + "\n\n".join(parts) + "<|im_end|>\n", False) if parts else ("", False)


def _call_text(call):
    f = call["function"]
    return f'<tool_call>\n{{"name": "{f["name"]}", "arguments": {json.dumps(f["arguments"])}}}\n</tool_call>'


def message_pieces(message, thinks=False):
    """A message as pieces. `thinks`: an answer made with thinking switched on; else its think block
    belongs to the prompt, empty."""
    role, text = message["role"], message["content"] or ""
    if role == "tool":
        return [(f"<|im_start|>user\n<tool_response>\n{text}\n</tool_response><|im_end|>\n", False)]
    if role != "assistant":
        return [(f"<|im_start|>{role}\n{text}<|im_end|>\n", False)]
    calls = [_call_text(c) for c in message.get("tool_calls", [])]
    said = "\n".join(([text] if text else []) + calls) + "<|im_end|>"
    if not thinks:
        # A model that learned to expect an empty block would never think: whether thoughts follow is
        # decided right after <think>. All other places are learned, so that no probability is chance.
        return [("<|im_start|>assistant\n<think>", False), ("\n\n", None), ("</think>\n\n", False), (said, True), ("\n", False)]
    thoughts = f"<think>\n{message['reasoning_content']}\n</think>\n\n"
    return [("<|im_start|>assistant\n", False), (thoughts + said, True), ("\n", False)]


def conversation_pieces(messages, tools=None):
    system = messages[0]["content"] if messages and messages[0]["role"] == "system" else ""
    pieces = [system_piece(system, tools)]
    for m in messages[1 if system else 0:]:
        pieces += message_pieces(m, thinks="reasoning_content" in m)
    return [p for p in pieces if p[0]]


def prompt(messages, tools=None, enable_thinking=False):
    """The text to continue."""
    return "".join(text for text, _ in conversation_pieces(messages, tools)) + "<|im_start|>assistant\n" + ("" if enable_thinking else NO_THOUGHTS)
