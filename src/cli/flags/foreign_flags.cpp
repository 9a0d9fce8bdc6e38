// See foreign_flags.h. Data; the names are those of llama.cpp's common/arg.cpp and Ollama's cmd.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/foreign_flags.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace sluice::cli {
namespace {

constexpr auto kSame = Meaning::same;
constexpr auto kNone = Meaning::none;
constexpr auto kAbsent = Meaning::absent;
constexpr auto kFlag = Takes::nothing;
constexpr auto kValue = Takes::value;
constexpr auto kOnOff = Takes::on_off;

constexpr std::string_view kFetch =
    "-hf user/repo fetches from Hugging Face; download other files and give their path";
constexpr std::string_view kDownload = "name the model: -hf user/repo, or user/repo:quant";
constexpr std::string_view kOneModel = "there is no speculative decoding; leave it out";
constexpr std::string_view kPinning = "threads are bound with taskset, as in taskset -c 0-7 sluice";
constexpr std::string_view kRope =
    "the rope scaling that the model file names is used; leave it out";
constexpr std::string_view kTemplate =
    "the model file's own chat template is used; --raw continues a text without one";
constexpr std::string_view kTextOnly = "sluice reads and writes text alone; leave it out";
constexpr std::string_view kServing = "it is about a server, and this command serves nothing";
constexpr std::string_view kAdapters =
    "there are no adapters; merge it into the model and convert that";
constexpr std::string_view kLogging = "there is no log; what there is to say goes to stderr";
constexpr std::string_view kServerLog =
    "a line for each request goes to stderr; --quiet leaves it out";
constexpr std::string_view kGateway = "a gateway in front of the server does that: docs/serving.md";
constexpr std::string_view kClientsTools = "the server runs no tools; those of clients are called";
constexpr std::string_view kWholeMix =
    "sluice quantize --types lists what is written; tensors are not chosen one by one";
constexpr std::string_view kImportance =
    "types are chosen without an importance matrix; leave it out";
constexpr std::string_view kBackground = "threads wait and are scheduled as the system does it";

// clang-format off
constexpr ForeignFlag kFlags[] = {
    // Model, memory and threads.
    {"-hf,-hfr", kValue, kSame, "--hf-repo", ""},
    {"-hff", kValue, kSame, "--hf-file", ""},
    {"-hft,--hf-token", kValue, kAbsent, "", "others on this machine could read it; set HF_TOKEN instead"},
    {"-mu,--model-url,-dr,--docker-repo", kValue, kAbsent, "", kFetch},
    {"--gpt-oss-20b-default,--gpt-oss-120b-default,--vision-gemma-4b-default,--vision-gemma-12b-default,--embd-gemma-default,--fim-qwen-1.5b-default,--fim-qwen-3b-default,--fim-qwen-7b-default,--fim-qwen-7b-spec,--fim-qwen-14b-spec,--fim-qwen-30b-default", kFlag, kAbsent, "", kDownload},
    {"-a,--alias", kValue, kAbsent, "", kServing},
    {"-tb,--threads-batch", kValue, kNone, "", "prompts are computed with the threads of -t"},
    {"-C,--cpu-mask,-Cr,--cpu-range,-Cb,--cpu-mask-batch,-Crb,--cpu-range-batch", kValue, kAbsent, "", kPinning},
    {"--cpu-strict,--prio,--poll,--cpu-strict-batch,--prio-batch,--poll-batch", kValue, kNone, "", kBackground},
    {"--numa", kValue, kNone, "", "memory is spread over the nodes as threads first touch it"},
    {"-b,--batch-size", kValue, kNone, "", "--prefill-chunk (-ub) says how many prompt tokens are computed together"},
    {"-ub,--ubatch-size", kValue, kSame, "--prefill-chunk", ""},
    {"-ctk", kValue, kSame, "--cache-type-k", ""},
    {"-ctv", kValue, kSame, "--cache-type-v", ""},
    {"--mlock", kFlag, kNone, "", "weights are copied into memory of the program where they fit"},
    {"--mmap,-lm mmap,--load-mode mmap,-mmp 1,--mmap 1", kFlag, kSame, "--weights mapped", ""},
    {"--no-mmap,-lm none,--load-mode none,-mmp 0,--mmap 0", kFlag, kSame, "--weights copied", ""},
    {"-lm,--load-mode", kValue, kAbsent, "", "expected mmap or none; here --weights says mapped or copied"},
    {"-mmp", kValue, kAbsent, "", "expected 0 or 1; here --weights says mapped or copied"},
    {"-dio,--direct-io,-ndio,--no-direct-io", kOnOff, kNone, "", "--weights says how the file is read"},
    {"--repack,-nr,--no-repack,--no-host,--op-offload,-nopo,--no-op-offload", kOnOff, kNone, "", "weights are laid out as the kernels need them"},
    {"-fa,--flash-attn", kOnOff, kNone, "", "sluice chooses how attention is computed"},
    {"-kvu,--kv-unified,-no-kvu,--no-kv-unified,--swa-full", kFlag, kNone, "", "there is one sequence, with KV for its whole context"},
    {"-cram,--cache-ram,-ctxcp,--ctx-checkpoints,--swa-checkpoints,-cms,--checkpoint-min-step,-dt,--defrag-thold", kValue, kNone, "", "the KV cache needs no upkeep"},
    {"-fit,--fit", kOnOff, kNone, "", "what fits is planned in any case"},
    {"-fitc,--fit-ctx", kValue, kNone, "", "the context is that of -c, whatever else has to leave VRAM"},
    {"-fitt,--fit-target", kValue, kAbsent, "", "--vram says how much VRAM is used at most"},
    {"--check-tensors", kFlag, kAbsent, "", "sluice inspect MODEL --check-tensors does that"},
    {"--override-kv", kValue, kAbsent, "", "what the model file says is used; change the file"},
    {"--rope-scaling,--rope-scale,--rope-freq-base,--rope-freq-scale,--yarn-orig-ctx,--yarn-ext-factor,--yarn-attn-factor,--yarn-beta-slow,--yarn-beta-fast,-gan,--grp-attn-n,-gaw,--grp-attn-w", kValue, kAbsent, "", kRope},
    {"--lora,--lora-scaled,--control-vector,--control-vector-scaled,--control-vector-layer-range", kValue, kAbsent, "", kAdapters},
    {"--warmup,--no-warmup", kFlag, kNone, "", "there is no warm-up"},
    {"--offline", kFlag, kNone, "", "a model that is here is used without asking; HF_HUB_OFFLINE=1 forbids to fetch"},
    {"--keepalive", kValue, kNone, "", "the model stays loaded until the program ends"},
    {"--insecure", kFlag, kNone, "", "HF_ENDPOINT says which hub is asked, and how"},

    // GPU and experts.
    {"-ngl all,--gpu-layers all,--n-gpu-layers all", kFlag, kSame, "--n-gpu-layers 9999", ""},
    {"-ngl auto,--gpu-layers auto,--n-gpu-layers auto", kFlag, kNone, "", "how many layers fit is planned in any case"},
    {"-ngl,--gpu-layers", kValue, kSame, "--n-gpu-layers", ""},
    {"-cmoe,--cpu-moe", kFlag, kSame, "--moe cpu", ""},
    {"-ncmoe", kValue, kSame, "--n-cpu-moe", ""},
    {"-ot exps=CPU,-ot .ffn_.*_exps.=CPU,-ot \\.ffn_.*_exps\\.=CPU,--override-tensor exps=CPU,--override-tensor .ffn_.*_exps.=CPU", kFlag, kSame, "--moe cpu", ""},
    {"-ot,--override-tensor", kValue, kAbsent, "", "experts are placed by --moe, --n-cpu-moe and --pin-layers"},
    {"--device none,-dev none", kFlag, kSame, "--device cpu", ""},
    {"--device CUDA0,-dev CUDA0", kFlag, kSame, "--device cuda --gpu 0", ""},
    {"--device CUDA1,-dev CUDA1", kFlag, kSame, "--device cuda --gpu 1", ""},
    {"-dev", kValue, kSame, "--device", ""},
    {"--list-devices", kFlag, kAbsent, "", "sluice plan MODEL lists the GPUs"},
    {"-mg,--main-gpu", kValue, kSame, "--gpu", ""},
    {"-sm none,--split-mode none", kFlag, kNone, "", "one GPU is used in any case"},
    {"-sm,--split-mode,-ts,--tensor-split,-rpc,--rpc", kValue, kAbsent, "", "one GPU is used; --gpu says which"},
    {"-kvo,--kv-offload", kFlag, kNone, "", "a layer's KV is where the layer is"},
    {"-nkvo,--no-kv-offload", kFlag, kAbsent, "", "a layer's KV is where the layer is; -ngl places layers"},

    // Prompt and chat.
    {"--n-predict", kValue, kSame, "--predict", ""},
    {"-sys,--system-prompt", kValue, kSame, "--system", ""},
    {"-sysf,--system-prompt-file", kValue, kSame, "--system-file", ""},
    {"-no-cnv,--no-conversation", kFlag, kSame, "--raw", ""},
    {"-cnv,--conversation,-i,--interactive,-if,--interactive-first", kFlag, kNone, "", "without a prompt sluice run chats"},
    {"-st,--single-turn", kFlag, kNone, "", "a prompt is answered once; without one sluice run chats"},
    {"-mli,--multiline-input", kFlag, kNone, "", "a line that ends in \\ goes on, and \"\"\" opens and closes a block"},
    {"-r,--reverse-prompt", kValue, kSame, "--stop", ""},
    {"-e,--escape", kFlag, kAbsent, "", "the prompt is taken as it stands; in bash write $'one\\ntwo'"},
    {"--no-escape", kFlag, kNone, "", "the prompt is always taken as it stands"},
    {"-bf,--binary-file", kValue, kSame, "--file", ""},
    {"--in-prefix,--in-suffix,--chat-template,--chat-template-file", kValue, kAbsent, "", kTemplate},
    {"--in-prefix-bos,--no-jinja,--skip-chat-parsing,--no-skip-chat-parsing", kFlag, kAbsent, "", kTemplate},
    {"--context-shift", kFlag, kNone, "", "a full context leaves the oldest messages out in any case"},
    {"--no-context-shift", kFlag, kSame, "--no-shift", ""},
    {"--keep", kValue, kNone, "", "the system message is always kept"},
    {"--prompt-cache", kValue, kAbsent, "", "sluice run keeps what it computed of a prompt; this command does not"},
    {"--prompt-cache-ro", kFlag, kAbsent, "", "sluice run keeps what it computed of a prompt; this command does not"},
    {"--prompt-cache-all", kFlag, kNone, "", "a chat keeps its answers too, and a single prompt's answer is not kept"},
    {"--jinja", kFlag, kNone, "", "chat templates are always rendered so"},
    {"-sp,--special", kFlag, kAbsent, "", "control tokens are not printed; sluice tokenize --decode shows those of ids"},
    {"-ptc,--print-token-count", kValue, kNone, "", "tokens are counted at the end of an answer"},
    {"--spm-infill", kFlag, kAbsent, "", "there is no infill; leave it out"},
    {"--display-prompt,--no-display-prompt", kFlag, kNone, "", "the prompt is not repeated; --verbose-prompt shows it"},
    {"--think,--think true,-rea on,--reasoning on", kFlag, kSame, "--thinking", ""},
    {"--think false,-rea off,--reasoning off,--reasoning-budget 0", kFlag, kSame, "--no-thinking", ""},
    {"-rea auto,--reasoning auto,--reasoning-budget -1", kFlag, kNone, "", "the model's template decides unless told otherwise"},
    {"-rea,--reasoning", kValue, kAbsent, "", "expected on, off or auto"},
    {"--reasoning-budget,--reasoning-budget-message,--reasoning-effort", kValue, kAbsent, "", "thinking is on or off: --thinking, --no-thinking"},
    {"--reasoning-format", kValue, kNone, "", "thinking is always kept apart from the answer"},
    {"--reasoning-preserve,--no-reasoning-preserve", kFlag, kNone, "", "the model's template decides what it sees of earlier thinking"},
    {"--hidethinking", kFlag, kSame, "--hide-thinking", ""},
    {"--format json", kFlag, kSame, "--json-schema {}", ""},
    {"--format", kValue, kSame, "--json-schema", ""},
    {"--mmproj,-mm,--mmproj-url,-mmu,--image,--audio,--video,--image-min-tokens,--image-max-tokens", kValue, kAbsent, "", kTextOnly},
    {"--no-mmproj,--mmproj-auto,--no-mmproj-auto,--mmproj-offload,--no-mmproj-offload", kFlag, kNone, "", "sluice reads and writes text alone"},
    {"--truncate", kFlag, kAbsent, "", "there are no embeddings; leave it out"},
    {"--dimensions,--pooling,--attention,--embd-normalize", kValue, kAbsent, "", "there are no embeddings; leave it out"},
    {"--embedding,--embeddings,--rerank,--reranking", kFlag, kAbsent, "", "there are no embeddings; leave it out"},

    // Choosing tokens.
    {"--temperature", kValue, kSame, "--temp", ""},
    {"--top-nsigma", kValue, kSame, "--top-n-sigma", ""},
    {"--typical", kValue, kSame, "--typical-p", ""},
    {"--dry-penalty-last-n", kValue, kSame, "--dry-last-n", ""},
    {"--dry-sequence-breaker", kValue, kSame, "--dry-breaker", ""},
    {"--dynatemp-exp", kValue, kSame, "--dynatemp-exponent", ""},
    {"--mirostat-lr", kValue, kSame, "--mirostat-eta", ""},
    {"--mirostat-ent", kValue, kSame, "--mirostat-tau", ""},
    {"-l", kValue, kSame, "--logit-bias", ""},
    {"-jf,--json-schema-file", kValue, kSame, "--json-schema @", ""},
    {"--sampler-seq,--sampling-seq", kValue, kAbsent, "", "--samplers takes the stages by name: top_k;top_p;temperature"},
    {"--adaptive-target,--adaptive-decay", kValue, kAbsent, "", "there is no such stage; --mirostat is the nearest"},
    {"-bs,--backend-sampling", kFlag, kNone, "", "tokens are chosen on the CPU"},
    {"-md,--model-draft,--spec-draft-model,-hfd,-hfrd,--hf-repo-draft,--spec-draft-hf,-td,--threads-draft,-tbd,--threads-batch-draft,--spec-draft-threads,--spec-draft-threads-batch,-ngld,--gpu-layers-draft,--n-gpu-layers-draft,--spec-draft-ngl,-devd,--device-draft,--spec-draft-device,-ctkd,--cache-type-k-draft,--spec-draft-type-k,-ctvd,--cache-type-v-draft,--spec-draft-type-v,-otd,--override-tensor-draft,--spec-draft-override-tensor,-ncmoed,--n-cpu-moe-draft,--spec-draft-ncmoe,--spec-draft-n-cpu-moe,--draft,--draft-n,--draft-max,--draft-min,--draft-n-min,--draft-p-min,--draft-p-split,--spec-draft-n-max,--spec-draft-n-min,--spec-draft-p-min,--spec-draft-p-split,--spec-type,-lcs,--lookup-cache-static,-lcd,--lookup-cache-dynamic,--dflash", kValue, kAbsent, "", kOneModel},
    {"--spec-ngram-size-n,--spec-ngram-size-m,--spec-ngram-min-hits,--spec-ngram-mod-n-match,--spec-ngram-mod-n-min,--spec-ngram-mod-n-max,--spec-ngram-simple-size-n,--spec-ngram-simple-size-m,--spec-ngram-simple-min-hits,--spec-ngram-map-k-size-n,--spec-ngram-map-k-size-m,--spec-ngram-map-k-min-hits,--spec-ngram-map-k4v-size-n,--spec-ngram-map-k4v-size-m,--spec-ngram-map-k4v-min-hits", kValue, kAbsent, "", kOneModel},
    {"-Cd,--cpu-mask-draft,--spec-draft-cpu-mask,-Crd,--cpu-range-draft,--spec-draft-cpu-range,-Cbd,--cpu-mask-batch-draft,--spec-draft-cpu-mask-batch,-Crbd,--cpu-range-batch-draft,--spec-draft-cpu-range-batch,--cpu-strict-draft,--spec-draft-cpu-strict,--cpu-strict-batch-draft,--spec-draft-cpu-strict-batch,--prio-draft,--spec-draft-prio,--prio-batch-draft,--spec-draft-prio-batch,--poll-draft,--spec-draft-poll,--poll-batch-draft,--spec-draft-poll-batch", kValue, kAbsent, "", kOneModel},
    {"-cmoed,--cpu-moe-draft,--spec-draft-cpu-moe,--spec-draft-backend-sampling,--no-spec-draft-backend-sampling,--mtp,--eagle3,--spec-default", kFlag, kAbsent, "", kOneModel},

    // What is printed.
    {"-co,--color,--log-colors", kOnOff, kNone, "", "a terminal that has colours gets them; NO_COLOR=1 turns them off"},
    {"--verbose,-v,--log-verbose,--perf,--show-timings", kFlag, kNone, "", "what there is to say is said in any case"},
    {"--no-perf,--no-show-timings", kFlag, kNone, "", "the speed goes to stderr: 2>/dev/null hides it"},
    {"--log-disable,--log-prefix,--no-log-prefix,--log-timestamps,--no-log-timestamps", kFlag, kNone, "", kLogging},
    {"--log-file,-lv,--verbosity,--log-verbosity", kValue, kNone, "", kLogging},
    {"--log-prompts-dir", kValue, kAbsent, "", "nothing that people write is kept; --verbose-prompt shows a prompt"},
    {"--output-file", kValue, kAbsent, "", "the shell's > writes to a file"},
    {"--nowordwrap", kFlag, kSame, "--no-wrap", ""},
    {"--simple-io", kFlag, kNone, "", "output that is no terminal is always plain"},
    {"--version", kFlag, kAbsent, "", "sluice version prints it"},
    {"--usage", kFlag, kSame, "--help", ""},
    {"--completion-bash", kFlag, kAbsent, "", "sluice completions bash prints them"},
    {"-cl,--cache-list", kFlag, kAbsent, "", "sluice list shows the models there are"},

    // llama-bench, llama-perplexity, llama-tokenize.
    {"-o json,--output json", kFlag, kSame, "--json", ""},
    {"-o md,--output md", kFlag, kSame, "--md", ""},
    {"-o,--output", kValue, kAbsent, "", "expected json or md; the shell's > writes to a file"},
    {"--n-depth", kValue, kSame, "--depth", ""},
    {"--repetitions", kValue, kSame, "--repeats", ""},
    {"-embd", kOnOff, kAbsent, "", "there are no embeddings; leave it out"},
    {"-pg,-oe,--output-err,--delay", kValue, kAbsent, "", "sluice bench measures -p and -n at the depths of -d"},
    {"--progress", kFlag, kNone, "", "a terminal shows progress in any case"},
    {"--chunks,--ppl-stride,--ppl-output-type", kValue, kAbsent, "", "the whole text is scored; give a shorter one"},
    {"--hellaswag,--winogrande,--multiple-choice,--kl-divergence", kFlag, kAbsent, "", "sluice perplexity scores a text, and nothing else"},
    {"--hellaswag-tasks,--winogrande-tasks,--multiple-choice-tasks", kValue, kAbsent, "", "sluice perplexity scores a text, and nothing else"},
    {"--save-all-logits,--kl-divergence-base", kValue, kAbsent, "", "sluice logits --all prints them"},
    {"--no-parse-special", kFlag, kSame, "--no-special", ""},
    {"--stdin", kFlag, kSame, "-", ""},
    {"--show-count", kFlag, kAbsent, "", "sluice tokenize MODEL TEXT prints one on each line"},

    // llama-quantize.
    {"--allow-requantize", kFlag, kNone, "", "files that are quantised already are taken, with a note"},
    {"--leave-output-tensor,--pure", kFlag, kAbsent, "", kWholeMix},
    {"--output-tensor-type,--token-embedding-type,--tensor-type,--tensor-type-file", kValue, kAbsent, "", kWholeMix},
    {"--imatrix,--include-weights,--exclude-weights", kValue, kAbsent, "", kImportance},
    {"--keep-split", kFlag, kAbsent, "", "a split model becomes one file; leave it out"},
    {"--prune-layers", kValue, kAbsent, "", "all layers are kept; leave it out"},
    {"--dry-run", kFlag, kAbsent, "", "sluice quantize --types says how many bits a weight has"},

    // Ollama.
    {"--license,--parameters,--template", kFlag, kSame, "--metadata", "", "inspect"},
    {"--modelfile", kFlag, kAbsent, "", "there are no Modelfiles; --metadata lists what the model file says", "inspect"},
    {"--system", kFlag, kAbsent, "", "a model file holds no system message; its template may: --metadata", "inspect"},
    {"--experimental,--experimental-yolo,--experimental-websearch", kFlag, kAbsent, "", "sluice runs no tools; leave it out"},

    // llama-server, for sluice serve.
    {"-to", kValue, kSame, "--timeout", "", "serve"},
    {"--cors-origins", kValue, kSame, "--cors", "", "serve"},
    {"--sleep-idle-seconds -1", kFlag, kNone, "", "a model stays loaded unless --keep-alive says otherwise", "serve"},
    {"--sleep-idle-seconds", kValue, kSame, "--keep-alive", "", "serve"},
    {"--log-disable", kFlag, kSame, "--quiet", "", "serve"},
    {"--slot-save-path", kValue, kSame, "--prefixes", "", "serve"},
    {"--log-file", kValue, kAbsent, "", "the log goes to stderr; the shell's 2> writes it to a file", "serve"},
    {"-lv,--verbosity,--log-verbosity", kValue, kNone, "", kServerLog, "serve"},
    {"--verbose,-v,--log-verbose,--log-prefix,--no-log-prefix,--log-timestamps,--no-log-timestamps", kFlag, kNone, "", kServerLog, "serve"},
    {"--metrics,--props,--ui,--webui", kFlag, kNone, "", "the server has it in any case", "serve"},
    {"--slots,--no-slots", kFlag, kNone, "", "there are no slots; GET /api/sluice/state says what is computed", "serve"},
    {"--no-ui,--no-webui", kFlag, kAbsent, "", "the page is always served; a gateway in front can hide it", "serve"},
    {"-cb,--cont-batching", kFlag, kNone, "", "answers are computed together in any case", "serve"},
    {"-nocb,--no-cont-batching", kFlag, kAbsent, "", "--parallel 1 computes one answer at a time", "serve"},
    {"--cache-prompt,--cache-idle-slots", kFlag, kNone, "", "what a prompt shares with an earlier one is computed once", "serve"},
    {"--no-cache-prompt,--no-cache-idle-slots", kFlag, kNone, "", "answers are the same whether a prompt's beginning was computed before", "serve"},
    {"--cache-reuse,-sps,--slot-prompt-similarity", kValue, kNone, "", "what a prompt shares with an earlier one is found as it is", "serve"},
    {"--threads-http", kValue, kNone, "", "connections take no threads that -t counts", "serve"},
    {"--reuse-port,--models-autoload,--no-models-autoload", kFlag, kAbsent, "", "--swap loads the model that a request names; --port says where it listens", "serve"},
    {"-a,--alias,--tags", kValue, kNone, "", "requests may name the model as they like, unless there is --swap", "serve"},
    {"--models-dir", kValue, kAbsent, "", "SLUICE_MODELS names the folders of models", "serve"},
    {"--models-max,--models-preset", kValue, kAbsent, "", "one model is loaded at a time; --swap lets requests choose it", "serve"},
    {"--ssl-key-file,--ssl-cert-file,--path,--api-prefix,--cors-methods,--cors-headers", kValue, kAbsent, "", kGateway, "serve"},
    {"--cors-credentials,--no-cors-credentials", kFlag, kAbsent, "", kGateway, "serve"},
    {"--sse-ping-interval", kValue, kAbsent, "", "streams have no pings; leave it out", "serve"},
    {"--prefill-assistant,--no-prefill-assistant", kFlag, kAbsent, "", "a message of the assistant at the end is continued where the endpoint says so", "serve"},
    {"--media-path,--mtmd-batch-max-tokens", kValue, kAbsent, "", kTextOnly, "serve"},
    {"--lora-init-without-apply", kFlag, kAbsent, "", kAdapters, "serve"},
    {"--tools,--tools-runtime,--mcp-servers-config,--mcp-servers-json,--ui-config,--ui-config-file,--webui-config,--webui-config-file", kValue, kAbsent, "", kClientsTools, "serve"},
    {"--agent,-ag,--no-agent,-no-ag,--ui-mcp-proxy,--no-ui-mcp-proxy,--webui-mcp-proxy,--no-webui-mcp-proxy", kFlag, kAbsent, "", kClientsTools, "serve"},

    // The same anywhere else.
    {"-np", kValue, kSame, "--parallel", ""},
    {"--parallel,--host,--port,--api-key,--api-key-file,--ssl-key-file,--ssl-cert-file,--path,--api-prefix,-to,--timeout,--threads-http,--slot-save-path,--cache-reuse,-sps,--slot-prompt-similarity,--models-dir,--models-max,--models-preset,--tags,--sleep-idle-seconds,--sse-ping-interval,--cors-origins,--cors-methods,--cors-headers,--media-path,--mtmd-batch-max-tokens,--tools,--tools-runtime,--mcp-servers-config,--mcp-servers-json,--ui-config,--ui-config-file,--webui-config,--webui-config-file", kValue, kAbsent, "", kServing},
    {"--server-base", kValue, kAbsent, "", "sluice run computes the answer itself; curl asks a server"},
    {"--metrics,--props,--slots,--no-slots,--webui,--no-webui,--ui,--no-ui,--cache-prompt,--no-cache-prompt,--cache-idle-slots,--no-cache-idle-slots,-cb,--cont-batching,-nocb,--no-cont-batching,--reuse-port,--models-autoload,--no-models-autoload,--cors-credentials,--no-cors-credentials,--prefill-assistant,--no-prefill-assistant,--lora-init-without-apply,--agent,-ag,--no-agent,-no-ag,--ui-mcp-proxy,--no-ui-mcp-proxy,--webui-mcp-proxy,--no-webui-mcp-proxy", kFlag, kAbsent, "", kServing},
};
// clang-format on

constexpr ForeignCommand kCommands[] = {
    {"ls", "list", ""},
    {"show", "inspect", ""},
    {"chat", "run", ""},
    {"cli", "run", ""},
    {"ppl", "perplexity", ""},
    {"push", "", "sluice sends nothing to anybody"},
    {"cp", "", "copy the model's file; sluice list shows where it is"},
    {"create", "",
     "sluice quantize writes a model in another type, and --system sets a system message"},
    {"ps", "", "no model stays loaded after its command has ended"},
    {"stop", "", "no model stays loaded after its command has ended"},
    {"launch", "", "sluice starts no other programs"},
    {"signin", "", "no account is needed"},
    {"signout", "", "no account is needed"},
};

template <typename Visit>
void for_each_name(std::string_view names, const Visit& visit) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(','), names.size());
    visit(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

// "`-fa`, `--flash-attn`"
std::string quoted(std::string_view names) {
  std::string out;
  for_each_name(
      names, [&](std::string_view name) { out += cat(out.empty() ? "" : ", ", "`", name, "`"); });
  return out;
}

std::string page_part(std::string_view title, std::string_view heading, Meaning meaning) {
  std::string out = cat("## ", title, "\n\n| flag | ", heading, " |\n|---|---|\n");
  for (const ForeignFlag& row : kFlags) {
    if (row.meaning != meaning) continue;
    const std::string what =
        meaning == Meaning::same ? cat("`", row.ours, "`") : std::string(row.why);
    const std::string where = row.command.empty() ? "" : cat(" of ", row.command);
    out += cat("| ", quoted(row.names), where, " | ", what, " |\n");
  }
  return out + "\n";
}

}  // namespace

std::span<const ForeignFlag> foreign_flags() { return kFlags; }
std::span<const ForeignCommand> foreign_commands() { return kCommands; }

const ForeignFlag* find_foreign(std::string_view command, std::string_view name) {
  const ForeignFlag* found = nullptr;
  for (const ForeignFlag& row : kFlags) {
    if (!row.command.empty() && row.command != command) continue;
    for_each_name(row.names, [&](std::string_view known) {
      if (known == name && (!found || found->command.empty())) found = &row;
    });
  }
  return found;
}

const ForeignFlag* find_foreign(std::string_view command, std::string_view name,
                                std::string_view value) {
  return value.empty() ? nullptr : find_foreign(command, cat(name, " ", value));
}

std::string foreign_flags_page() {
  std::string out = page_part("Mean something here", "is read as", Meaning::same) +
                    page_part("Have no meaning here", "why", Meaning::none) +
                    page_part("Are refused", "what to do instead", Meaning::absent) +
                    "## Commands\n\n| command | here |\n|---|---|\n";
  for (const ForeignCommand& c : kCommands) {
    out += cat("| `", c.name, "` | ",
               c.ours.empty() ? std::string(c.instead) : cat("`", c.ours, "`"), " |\n");
  }
  return out;
}

}  // namespace sluice::cli
