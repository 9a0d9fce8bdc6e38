// Light colouring of code: comments, strings, numbers and the words that many languages share. It knows no grammar, so it
// is never far off and never slow: one pass of one expression.
// SPDX-License-Identifier: Apache-2.0

const WORDS =
  "abstract and as assert async await auto bool break case catch char class const constexpr continue def default del delete do " +
  "double elif else end enum except explicit export extends extern false False final finally float fn for from func function " +
  "global go if impl implements import in inline instanceof int interface is lambda let long loop match mod module mut " +
  "namespace new nil None not null nullptr of operator or override package pass private protected pub public raise return " +
  "self short signed sizeof static struct super switch template this throw trait true True try type typedef typename typeof " +
  "union unsigned use using var virtual void volatile where while with yield then fi done esac echo local select insert update " +
  "create table values join left right inner outer on group by order having limit into set SELECT FROM WHERE INSERT UPDATE " +
  "CREATE TABLE VALUES JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT INTO SET AND OR NOT NULL AS";

const words = new Set(WORDS.split(" "));
const HASH_COMMENTS = /^(py|python|sh|bash|shell|zsh|console|rb|ruby|yaml|yml|toml|r|perl|make|makefile|cmake|dockerfile)$/;
const DASH_COMMENTS = /^(sql|lua|haskell|hs)$/;
const PLAIN = /^(|text|txt|plain|plaintext|markdown|md|output|log)$/;

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c] ?? c);
}

function expression(language: string): RegExp {
  const comment = HASH_COMMENTS.test(language) ? "#.*" : DASH_COMMENTS.test(language) ? "--.*" : "\\/\\/.*|\\/\\*[^]*?(?:\\*\\/|$)|<!--[^]*?(?:-->|$)";
  const string = "\"\"\"[^]*?(?:\"\"\"|$)|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'|`(?:\\\\[^]|[^`\\\\])*`?";
  const number = "\\b(?:0x[\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\w*";
  return new RegExp(`(${comment})|(${string})|(${number})|([A-Za-z_]\\w*)(\\s*\\()?`, "g");
}

/** HTML, escaped, with <span class="hl-…">. */
export function highlight(code: string, language: string): string {
  const name = language.toLowerCase();
  if (PLAIN.test(name)) return escape(code);
  if (name === "diff") return code.replace(/^.*$/gm, (line) => mark(line[0] === "+" ? "add" : line[0] === "-" ? "del" : "", line));
  let html = "";
  let at = 0;
  for (const found of code.matchAll(expression(name))) {
    const [whole, comment, string, number, word, call] = found;
    html += escape(code.slice(at, found.index));
    at = found.index + whole.length;
    if (comment !== undefined) html += mark("comment", comment);
    else if (string !== undefined) html += mark("string", string);
    else if (number !== undefined) html += mark("number", number);
    else html += mark(words.has(word ?? "") ? "word" : call ? "call" : "", word ?? "") + escape(call ?? "");
  }
  return html + escape(code.slice(at));
}

function mark(kind: string, text: string): string {
  return kind ? `<span class="hl-${kind}">${escape(text)}</span>` : escape(text);
}
