import fc from 'fast-check';
import type { Draft } from './valid-requests.ts';
import { snakeCase, toWire, type WireRequest } from './wire-request.ts';

/** Generates the same requests in other spellings that the document allows: keys, white space, media type. */
export function respelledRequests(drafts: fc.Arbitrary<Draft>): fc.Arbitrary<WireRequest> {
  const types = ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/vnd.a.b+json'];
  return fc
    .record({
      draft: drafts,
      isSnake: fc.boolean(),
      indent: fc.nat(3),
      type: fc.constantFrom(...types),
    })
    .map(({ draft, isSnake, indent, type }) => {
      const spell = (name: string): string => (isSnake ? snakeCase(name) : name);
      const query = draft.query.map(([name, value]): [string, string] => [spell(name), value]);
      const request = toWire({ ...draft, query }, 'valid');
      if (!draft.body) return request;
      const fields = Object.entries(draft.body).map(([name, value]) => [spell(name), value]);
      const body = Buffer.from(JSON.stringify(Object.fromEntries(fields), null, indent));
      return { ...request, body, headers: { ...request.headers, 'content-type': type } };
    });
}
