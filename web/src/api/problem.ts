// What went wrong with a request, in words for the person in front of the page: what happened, and what to do.
// SPDX-License-Identifier: Apache-2.0

export interface Problem {
  title: string;
  advice: string;
  /** What the server said, word for word. */
  detail?: string;
  /** Where the way out is in the settings. */
  settings?: boolean;
}

export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.title);
  }
}

export const unreachable: Problem = {
  title: "The server cannot be reached",
  advice: "Is sluice serve still running? Start it again; your conversations are kept in this browser.",
};

export const broken: Problem = {
  title: "The connection broke in mid-answer",
  advice: "What had arrived is above. Try again, or go on from here.",
};

async function detailOf(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  try {
    const body = JSON.parse(text) as { error?: { message?: string } | string };
    const error = body.error;
    return (typeof error === "string" ? error : error?.message) ?? text.slice(0, 300);
  } catch {
    return text.slice(0, 300);
  }
}

export function isOverflow(detail: string): boolean {
  return /context|too (long|many tokens)/i.test(detail);
}

function waitOf(response: Response): string {
  const seconds = Number(response.headers.get("retry-after"));
  return seconds > 0 ? `Try again in ${seconds} s.` : "Try again in a moment.";
}

/** The problem behind an answer that is not 2xx. */
export async function problemOf(response: Response): Promise<Problem> {
  const detail = await detailOf(response);
  switch (response.status) {
    case 401:
    case 403:
      return { title: "The server wants an API key", advice: "Enter it in the settings, then try again.", detail, settings: true };
    case 404:
      return { title: "The server does not know this request", advice: "Are page and server of the same version? Reload the page.", detail };
    case 413:
      return { title: "The conversation is too large for the server", advice: "Start a new one, or shorten what you sent.", detail };
    case 429:
      return { title: "The server is busy", advice: `All its places are taken. ${waitOf(response)}`, detail };
    case 503:
      return { title: "The server is not ready", advice: `It is starting, stopping or loading a model. ${waitOf(response)}`, detail };
  }
  if (response.status < 500) {
    return isOverflow(detail)
      ? { title: "The conversation no longer fits the model's context", advice: "Start a new one, or edit an earlier message to branch off before it got long.", detail }
      : { title: "The server refused the request", advice: "Look at the settings; an empty field leaves the choice to the server.", detail, settings: true };
  }
  return { title: `The server failed (${response.status})`, advice: "Try again. If it stays, look at what sluice serve prints.", detail };
}
