// sluice tokenize: the tokens of a text, or the text of tokens. Reads of the model file what it
// says about its tokenizer, and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/error.h"
#include "cli/command.h"
#include "cli/files/hub_models.h"
#include "cli/files/json_text.h"
#include "cli/files/text_file.h"
#include "cli/flags/hub_flags.h"
#include "cli/flags/words.h"
#include "cli/terminal/terminal_text.h"
#include "model_file/tokenizer_data.h"
#include "text/tokenizer/tokenizer.h"
#include "text/utf8.h"

namespace sluice::cli {
namespace {

struct TokenizeFlags {
  std::string model;
  std::string prompt;
  std::string file;
  std::vector<std::string> words;
  std::vector<TokenId> decode;
  bool has_prompt = false;
  bool no_special = false;
  bool no_bos = false;
  bool ids = false;
  bool json = false;
};

std::string input_text(const TokenizeFlags& flags) {
  if (flags.has_prompt) return flags.prompt;
  return read_text_file(flags.file);
}

// Standard input is the text where nothing else is.
void take_words(TokenizeFlags& flags, bool has_model, bool has_text) {
  const ModelAndText words = sort_words(flags.words, has_model, has_text);
  if (words.model) flags.model = *words.model;
  if (flags.model.empty()) throw CLI::RequiredError("--model");
  if (words.text && *words.text != "-") {
    flags.has_prompt = true;
    flags.prompt = *words.text;
  } else if (words.text || (!has_text && has_piped_input())) {
    flags.file = "-";
  } else if (!has_text) {
    throw CLI::ValidationError("tokenize",
                               "nothing to encode; give a text, -f FILE or --decode IDS");
  }
}

// Text between quotes that neither ends the line nor steers the terminal: all but valid UTF-8
// without control characters is written \n or \xNN.
std::string printable(std::string_view bytes) {
  std::string out = "\"";
  while (!bytes.empty()) {
    const text::Utf8Unit unit = text::next_utf8(bytes);
    const std::string_view c = bytes.substr(0, unit.n_bytes);
    if (c == "\n") {
      out += "\\n";
    } else if (c == "\"" || c == "\\") {
      out += "\\" + std::string(c);
    } else if (unit.state == text::Utf8State::complete && !is_control(c)) {
      out += c;
    } else {
      for (const char byte : c) {
        char hex[8];
        std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(byte));
        out += hex;
      }
    }
    bytes.remove_prefix(c.size());
  }
  return out + "\"";
}

// JSON cannot carry bytes that are not UTF-8; a token that is part of a character lists them.
Json token_to_json(TokenId id, const std::string& piece) {
  Json token = {{"id", id}, {"text", piece}};
  if (text::valid_utf8_length(piece) < piece.size()) {
    token["bytes"] = std::vector<uint8_t>(piece.begin(), piece.end());
  }
  return token;
}

void print_tokens(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                  const TokenizeFlags& flags) {
  if (flags.json) {
    Json tokens = Json::array();
    for (const TokenId id : ids) tokens.push_back(token_to_json(id, tokenizer.piece(id, true)));
    std::printf("%s\n", dump(Json{{"tokens", std::move(tokens)}, {"ids", ids}}).c_str());
  } else if (flags.ids) {
    for (size_t i = 0; i < ids.size(); ++i) std::printf("%s%d", i == 0 ? "" : ",", ids[i]);
    std::printf("\n");
  } else {
    for (const TokenId id : ids) {
      std::printf("%8d  %s\n", id, printable(tokenizer.piece(id, true)).c_str());
    }
  }
}

void print_text(const text::Tokenizer& tokenizer, const TokenizeFlags& flags) {
  const std::string decoded = tokenizer.decode(flags.decode, !flags.no_special);
  if (flags.json) {
    std::printf("%s\n", dump(Json{{"text", decoded}}).c_str());
  } else {
    std::fwrite(decoded.data(), 1, decoded.size(), stdout);
  }
}

void run(const TokenizeFlags& flags) {
  const DescribedModel described = describe_model(flags.model);
  const gguf::ModelFile& file = described.file;
  const text::Tokenizer tokenizer(model_file::read_tokenizer_data(file.metadata()));
  for (const std::string& warning : tokenizer.warnings()) print_warning(warning);
  if (!flags.decode.empty()) return print_text(tokenizer, flags);
  const std::vector<TokenId> ids = tokenizer.encode(
      input_text(flags), {.add_special = !flags.no_bos, .parse_special = !flags.no_special});
  print_tokens(tokenizer, ids, flags);
}

}  // namespace

void add_tokenize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenize", "the tokens of a text, or the text of tokens");
  const auto flags = flags_for<TokenizeFlags>(*command, run);
  CLI::Option* model = command->add_option("-m,--model", flags->model,
                                           "GGUF file, or a name that sluice list shows");
  add_hub_flags(*command, flags->model, model);
  command->add_option("words", flags->words, "the model, and a text; - is standard input")
      ->type_name("[MODEL] [TEXT]");
  CLI::Option* prompt = command->add_option("-p,--prompt", flags->prompt, "text to encode");
  CLI::Option* file =
      command->add_option("-f,--file", flags->file, "file with text to encode")->excludes(prompt);
  CLI::Option* decode = command->add_option("--decode", flags->decode, "token ids to decode: 1,2,3")
                            ->delimiter(',')
                            ->allow_extra_args(false)
                            ->excludes(prompt, file);
  command->add_flag("--no-special", flags->no_special,
                    "texts of control tokens are plain text; with --decode they are left out");
  command->add_flag("--no-bos", flags->no_bos, "add neither BOS nor EOS");
  command->add_flag("--ids", flags->ids, "ids alone, on one line");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags, model, prompt, file, decode] {
    flags->has_prompt = prompt->count() > 0;
    take_words(*flags, !flags->model.empty(),
               prompt->count() + file->count() + decode->count() > 0);
    run(*flags);
  });
}

}  // namespace sluice::cli
