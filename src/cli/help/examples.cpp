// See examples.h. Data.
// SPDX-License-Identifier: Apache-2.0
#include "cli/help/examples.h"

namespace sluice::cli {
namespace {

constexpr Example kExamples[] = {
    {"", "sluice run", "chat with a small model that ships with the program"},
    {"", "sluice run model.gguf \"Why is the sky blue?\"", "one answer"},
    {"", "sluice plan model.gguf", "what would be where, and how fast, before it is loaded"},
    {"", "sluice run -hf Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", "fetch a model and chat with it"},
    {"", "sluice help flags", "what became of llama.cpp's and Ollama's flags"},
    {"run", "sluice run model.gguf", "chat; /help lists the chat's commands"},
    {"run", "sluice run model.gguf \"Why is the sky blue?\"", "one answer"},
    {"run", "sluice run model.gguf -p \"Sum this up:\" < notes.txt", "a question about a file"},
    {"run", "sluice run model.gguf -c 32k -ngl 99 --n-cpu-moe 20 -p \"Hi\"", "placed by hand"},
    {"run", "sluice run model.gguf -p \"A person\" -j @person.json --json", "JSON in, JSON out"},
    {"serve", "sluice serve model.gguf", "a page to chat, and OpenAI's API, at 127.0.0.1:8080"},
    {"serve", "sluice serve model.gguf --host 0.0.0.0 --api-key-file keys -np 16", "to others too"},
    {"plan", "sluice plan model.gguf", "on this machine"},
    {"plan", "sluice plan model.gguf --hw rtx4070ti-12g+64g-ddr5 -c 32k", "on another one"},
    {"plan", "sluice plan -hf Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", "before 18 GB are fetched"},
    {"bench", "sluice bench model.gguf", "prompts of 256 and 1024 tokens, answers of 64"},
    {"bench", "sluice bench model.gguf -p 512 -n 128 -d 0,4k -r 3 --md", "as a Markdown table"},
    {"simulate", "sluice simulate --generate 2000", "every cache policy on a made-up routing"},
    {"simulate", "sluice simulate --trace x.slrt --budget 20,40 --report x.html", "a recorded one"},
    {"inspect", "sluice inspect model.gguf", "what it is, and whether sluice can run it"},
    {"inspect", "sluice inspect model.gguf --tensors --json", "every tensor, as JSON"},
    {"pull", "sluice pull Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", "again after a break: it goes on"},
    {"pull", "sluice pull Qwen/Qwen3-30B-A3B-GGUF --list", "which types there are"},
    {"rm", "sluice rm Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", "gives its room on the disk back"},
    {"list", "sluice list", "names, sizes and places"},
    {"logits", "sluice logits model.gguf --tokens 1,2,3 --top 5", "what may follow each token"},
    {"tokenize", "sluice tokenize model.gguf \"Hello, world\"", "a token a line"},
    {"tokenize", "sluice tokenize model.gguf --decode 9906,11", "and back"},
    {"perplexity", "sluice perplexity model.gguf -f wiki.test.raw -c 512",
     "as llama.cpp defines it"},
    {"synth", "sluice synth tiny.gguf --layers 2 --experts 8", "a small model of random weights"},
    {"quantize", "sluice quantize model.gguf small.gguf Q4_K_M",
     "a smaller file of the same model"},
    {"quantize", "sluice quantize --types", "what it can write"},
    {"completions", "sluice completions bash > ~/.local/share/bash-completion/completions/sluice",
     "for the next shell"},
    {"help", "sluice help run", "the flags of a command"},
    {"help", "sluice help flags", "what became of llama.cpp's and Ollama's flags"},
    {"help", "sluice help man > sluice.1", "the manual page"},
};

}  // namespace

std::span<const Example> examples() { return kExamples; }

}  // namespace sluice::cli
