// One answer from /v1/chat/completions, as it streams.
// SPDX-License-Identifier: Apache-2.0
import type { Settings } from "../store/settings";
import { broken, problemOf, ProblemError, unreachable } from "./problem";
import { events } from "./sse";

export interface Turn {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface Piece {
  text?: string;
  reasoning?: string;
  finish?: string;
  promptTokens?: number;
  answerTokens?: number;
  tokensPerSecond?: number;
}

interface Chunk {
  choices?: { delta?: { content?: string | null; reasoning_content?: string | null }; finish_reason?: string | null }[];
  usage?: { prompt_tokens?: number; completion_tokens?: number } | null;
  timings?: { predicted_per_second?: number };
  error?: { message?: string };
}

export function headersOf(settings: Settings): Record<string, string> {
  return settings.apiKey ? { authorization: `Bearer ${settings.apiKey}` } : {};
}

/** The fields that are set; the server chooses the others. */
function sampling(settings: Settings): Record<string, number> {
  const fields: Record<string, number | null> = {
    temperature: settings.temperature,
    top_p: settings.topP,
    top_k: settings.topK,
    min_p: settings.minP,
    seed: settings.seed,
    max_tokens: settings.maxTokens,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)) as Record<string, number>;
}

function pieceOf(chunk: Chunk): Piece {
  const choice = chunk.choices?.[0];
  return {
    text: choice?.delta?.content ?? undefined,
    reasoning: choice?.delta?.reasoning_content ?? undefined,
    finish: choice?.finish_reason ?? undefined,
    promptTokens: chunk.usage?.prompt_tokens,
    answerTokens: chunk.usage?.completion_tokens,
    tokensPerSecond: chunk.timings?.predicted_per_second,
  };
}

async function post(turns: Turn[], settings: Settings, signal: AbortSignal): Promise<Response> {
  const body = { messages: turns, stream: true, stream_options: { include_usage: true }, ...sampling(settings) };
  try {
    return await fetch("v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", ...headersOf(settings) },
      body: JSON.stringify(body),
      signal,
    });
  } catch (error) {
    throw signal.aborted ? error : new ProblemError(unreachable);
  }
}

/** Throws a ProblemError, or an AbortError where `signal` ended it. */
export async function* answer(turns: Turn[], settings: Settings, signal: AbortSignal): AsyncGenerator<Piece> {
  const response = await post(turns, settings, signal);
  if (!response.ok || !response.body) throw new ProblemError(await problemOf(response));
  let finished = false;
  try {
    for await (const data of events(response.body)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data) as Chunk;
      if (chunk.error) throw new ProblemError({ ...broken, title: "The server gave up in mid-answer", detail: chunk.error.message });
      const piece = pieceOf(chunk);
      finished ||= piece.finish !== undefined;
      yield piece;
    }
  } catch (error) {
    if (signal.aborted || error instanceof ProblemError) throw error;
    throw new ProblemError(broken);
  }
  if (!finished) throw new ProblemError(broken);
}
