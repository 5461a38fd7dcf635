// What has to be read before a load can be planned: the tokenizer of the model and the user's prompts.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { LoadSpec } from '../core/index.ts';
import { type FilePrompts, readPromptFile } from './prompt-files.ts';
import { loadTokenizer, type PromptTokenizer } from './tokenizer.ts';

export interface PromptMaterial {
  /** Null: texts are sent uncounted. */
  readonly tokenizer: PromptTokenizer | null;
  /** Prompts of ids are sent as text. */
  readonly asText: boolean;
  readonly file: FilePrompts | null;
}

export interface MaterialOptions {
  /** Folder or tokenizer.json of the model's tokenizer. */
  readonly tokenizerPath: string | null;
  /** False for a server whose completions take only text; chats never take ids. */
  readonly takesIds: boolean;
}

/**
 * Everything that planLoad needs beside the load itself; null when that is nothing.
 * @throws ConfigError what loadTokenizer and readPromptFile throw
 */
export async function preparePrompts(load: LoadSpec, options: MaterialOptions): Promise<PromptMaterial | null> {
  const asText = load.endpoint === 'chat' || !options.takesIds;
  if (load.prompts.kind === 'ids' && !asText) return null;
  const tokenizer = options.tokenizerPath === null ? null : await loadTokenizer(options.tokenizerPath);
  const file = load.prompts.kind === 'ids' ? null : await readPromptFile({ load, tokenizer, asText });
  return { tokenizer, asText, file };
}

/** The tokenizer to count with: the one that was named, else the one in the model's folder, else none. */
export function tokenizerPathOf(model: { readonly path: string; readonly tokenizer?: string | null }): string | null {
  return model.tokenizer ?? (existsSync(join(model.path, 'tokenizer.json')) ? model.path : null);
}
