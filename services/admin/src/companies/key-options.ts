import { SCOPES, type Scope } from '@posthorn/domain/access/scopes.ts';
import type { AskedRights } from '@posthorn/platform/mongo/companies/make-api-key.ts';
import { z } from 'zod';
import { parseOptions, timeOption } from '../parse-options.ts';

const isScope = (text: string): text is Scope => SCOPES.some((scope) => scope === text);

const schema = z.object({
  scopes: z
    .string()
    .transform((text) => text.split(',').map((each) => each.trim()))
    .refine((texts) => texts.every(isScope), `must be one or more of ${SCOPES.join(',')}`)
    .transform((texts) => texts.filter(isScope))
    .optional(),
  app: z.string().optional(),
  expires: timeOption.optional(),
});

/** Reads the options of `key create`. Throws an error that names every invalid one. */
export function parseKeyRights(options: object): AskedRights {
  const { scopes, app, expires } = parseOptions(schema, options);
  return { scopes, appId: app, expiresAtMs: expires };
}
