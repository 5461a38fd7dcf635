// Whole HTTP responses with uvicorn's headers, in its order.

import type { ServerResponse } from 'node:http';
import { errorBody } from './event-shapes.ts';
import type { ApiError } from './generation-request.ts';

export function uvicornHeaders(): string[] {
  return ['date', new Date().toUTCString(), 'server', 'uvicorn'];
}

export function sendText(response: ServerResponse, status: number, type: string | null, body: string): void {
  const length = ['content-length', String(Buffer.byteLength(body))];
  const kind = type === null ? [] : ['content-type', type];
  response.writeHead(status, [...uvicornHeaders(), ...length, ...kind, 'vary', 'Origin']);
  response.end(body);
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  sendText(response, status, 'application/json', JSON.stringify(body));
}

export function sendError(response: ServerResponse, error: ApiError): void {
  sendJson(response, error.status, errorBody(error));
}
