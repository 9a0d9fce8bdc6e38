// sluice inspect: what is in a GGUF file, and whether sluice can run it.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/files/hub_models.h"
#include "cli/files/json_text.h"
#include "cli/files/model_registry.h"
#include "cli/flags/model_options.h"
#include "cli/terminal/progress_bar.h"
#include "gguf/in_quotes.h"
#include "gguf/model_file.h"
#include "model/model.h"
#include "quant/validate.h"

namespace sluice::cli {
namespace {

struct InspectFlags {
  std::string path;
  bool tensors = false;
  bool metadata = false;
  bool check = false;
  bool json = false;
};

uint64_t n_values(const gguf::TensorInfo& tensor) {
  uint64_t n = 1;
  for (const int64_t dim : tensor.shape) n *= static_cast<uint64_t>(dim);
  return n;
}

struct TypeSum {
  int n_tensors = 0;
  uint64_t n_values = 0;
  uint64_t n_bytes = 0;
};

std::map<std::string_view, TypeSum> sums_by_type(const gguf::ModelFile& file) {
  std::map<std::string_view, TypeSum> sums;
  for (const gguf::Tensor& tensor : file.tensors()) {
    TypeSum& sum = sums[tensor.type->name];
    ++sum.n_tensors;
    sum.n_values += n_values(tensor);
    sum.n_bytes += tensor.n_bytes;
  }
  return sums;
}

// Why sluice cannot run the file; nothing where it can.
std::optional<std::string> obstacle(const gguf::ModelFile& file) {
  try {
    const model::Model bound(file);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

// Arrays up to 8 elements whole, longer ones by their beginning and length.
Json to_json(const gguf::Value& value) {
  constexpr size_t kShown = 8;
  return std::visit(
      [&](const auto& v) -> Json {
        if constexpr (gguf::kIsVector<std::decay_t<decltype(v)>>) {
          Json shown = Json::array();
          for (size_t i = 0; i < std::min(v.size(), kShown); ++i) shown.push_back(Json(v[i]));
          if (v.size() <= kShown) return shown;
          return Json{{"length", v.size()}, {"first", std::move(shown)}};
        } else {
          return v;
        }
      },
      value);
}

Json describe_shape(const model::Config& c) {
  return {{"n_layers", c.n_layers},
          {"d_model", c.d_model},
          {"n_heads", c.n_heads},
          {"n_kv_heads", c.n_kv_heads},
          {"head_dim", c.head_dim},
          {"n_experts", c.n_experts},
          {"n_experts_used", c.n_experts_used},
          {"is_dense", c.is_dense},
          {"d_ff", c.d_ff},
          {"d_ff_shared", c.d_ff_shared},
          {"n_vocab", c.n_vocab},
          {"n_ctx_train", c.n_ctx_train}};
}

Json describe(const gguf::ModelFile& file, const InspectFlags& flags) {
  Json out = {{"path", flags.path},
              {"n_shards", file.n_shards()},
              {"file_bytes", file.file_bytes()},
              {"architecture", file.metadata().get_string_or("general.architecture", "")},
              {"name", file.metadata().get_string_or("general.name", "")},
              {"n_tensors", file.tensors().size()}};
  const auto reason = obstacle(file);
  out["runs"] = !reason;
  if (reason) {
    out["obstacle"] = *reason;
  } else {
    out["shape"] = describe_shape(model::Model(file).config());
  }
  uint64_t parameters = 0;
  Json types = Json::array();
  for (const auto& [name, sum] : sums_by_type(file)) {
    parameters += sum.n_values;
    types.push_back({{"type", name},
                     {"n_tensors", sum.n_tensors},
                     {"n_values", sum.n_values},
                     {"bytes", sum.n_bytes}});
  }
  out["n_parameters"] = parameters;
  out["types"] = std::move(types);
  if (flags.metadata) {
    for (const auto& [key, value] : file.metadata().entries())
      out["metadata"][key] = to_json(value);
  }
  if (flags.tensors) {
    out["tensors"] = Json::array();
    for (const gguf::Tensor& t : file.tensors()) {
      out["tensors"].push_back({{"name", t.name},
                                {"shape", t.shape},
                                {"type", t.type->name},
                                {"offset", t.offset},
                                {"bytes", t.n_bytes}});
    }
  }
  return out;
}

void print_text(const Json& d) {
  const auto text = [&](const char* key) { return d[key].get<std::string>(); };
  std::printf("%s: %s", text("path").c_str(),
              format_bytes(d["file_bytes"].get<uint64_t>()).c_str());
  if (d["n_shards"] > 1) std::printf(" in %d shards", d["n_shards"].get<int>());
  std::printf("\n  architecture  %s\n", gguf::in_quotes(text("architecture")).c_str());
  if (!text("name").empty())
    std::printf("  name          %s\n", gguf::in_quotes(text("name")).c_str());
  std::printf("  parameters    %.2f billion in %zu tensors\n",
              d["n_parameters"].get<double>() / 1e9, d["n_tensors"].get<size_t>());
  if (d.contains("shape")) {
    const Json& s = d["shape"];
    const auto n = [&](const char* key) { return s[key].get<int>(); };
    std::printf("  layers        %d of width %d, %d heads (%d key-value) of %d\n", n("n_layers"),
                n("d_model"), n("n_heads"), n("n_kv_heads"), n("head_dim"));
    if (s["is_dense"].get<bool>()) {
      std::printf("  network       dense, width %d", n("d_ff"));
    } else {
      std::printf("  experts       %d of %d used, width %d", n("n_experts_used"), n("n_experts"),
                  n("d_ff"));
    }
    if (n("d_ff_shared") > 0) std::printf(", and a shared one of %d", n("d_ff_shared"));
    std::printf("\n  vocabulary    %d tokens\n  context       %d tokens\n", n("n_vocab"),
                n("n_ctx_train"));
  }
  std::printf("\n  %-8s %8s %12s %12s\n", "type", "tensors", "values", "size");
  for (const Json& t : d["types"]) {
    std::printf("  %-8s %8d %10.2f M %12s\n", t["type"].get<std::string>().c_str(),
                t["n_tensors"].get<int>(), t["n_values"].get<double>() / 1e6,
                format_bytes(t["bytes"].get<uint64_t>()).c_str());
  }
  if (d.contains("metadata")) {
    std::printf("\n  metadata\n");
    for (const auto& [key, value] : d["metadata"].items()) {
      std::printf("  %s = %s\n", gguf::in_quotes(key).c_str(), dump(value).substr(0, 160).c_str());
    }
  }
  if (d.contains("tensors")) {
    std::printf("\n  %-44s %-8s %-24s %12s\n", "tensor", "type", "shape", "size");
    for (const Json& t : d["tensors"]) {
      std::printf("  %-44s %-8s %-24s %12s\n",
                  gguf::in_quotes(t["name"].get<std::string>()).c_str(),
                  t["type"].get<std::string>().c_str(), dump(t["shape"]).c_str(),
                  format_bytes(t["bytes"].get<uint64_t>()).c_str());
    }
  }
  if (d["runs"].get<bool>()) {
    std::printf("\n  sluice can run it\n");
  } else {
    std::printf("\n  sluice cannot run it: %s\n", text("obstacle").c_str());
  }
}

// Every number of every tensor: scales and values must be finite.
void check_data(const gguf::ModelFile& file) {
  ProgressBar bar("checking");
  uint64_t done = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.type->supported) {
      const auto n_blocks = static_cast<int64_t>(tensor.n_bytes / tensor.type->block_bytes);
      const int64_t bad = quant::first_bad_block(static_cast<quant::Type>(tensor.type->id),
                                                 tensor.data.data(), n_blocks);
      if (bad >= 0) {
        throw Error(Errc::bad_file,
                    cat(file.paths()[tensor.shard], ": tensor ", gguf::in_quotes(tensor.name),
                        " holds a number that is not finite in block ", bad, " of ", n_blocks,
                        "; the file is damaged: download or convert it again"));
      }
    }
    done += tensor.n_bytes;
    bar.update(done, file.file_bytes());
  }
}

void run(const InspectFlags& flags) {
  if (flags.check) check_data(gguf::ModelFile::open(find_model(flags.path)));
  const DescribedModel described = describe_model(flags.path);
  const gguf::ModelFile& file = described.file;
  const Json description = describe(file, flags);
  if (flags.json) {
    std::printf("%s\n", dump(description, 2).c_str());
  } else {
    print_text(description);
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  CLI::App* command = app.add_subcommand("inspect", "show what is in a GGUF file");
  const auto flags = flags_for<InspectFlags>(*command, run);
  add_model_name(*command, flags->path)->required();
  command->add_flag("--tensors", flags->tensors, "list every tensor");
  command->add_flag("--metadata", flags->metadata, "list every key");
  command->add_flag("--check-tensors", flags->check,
                    "read all data and refuse numbers that are not finite");
  command->add_flag("--json", flags->json, "print JSON");
}

}  // namespace sluice::cli
