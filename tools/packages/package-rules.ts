import { z } from 'zod';

/**
 * What may be in production: licences that ask for no more than to be named. Of a choice, which is one entry
 * here once a person has read it, the first is taken.
 */
const ALLOWED_LICENCES: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  '(MIT OR CC0-1.0)',
  'Unlicense',
]);

/** Advisories that do not concern Posthorn: the id, and why. */
export const ACCEPTED_ADVISORIES: Readonly<Record<string, string>> = {};

const sbomSchema = z.object({
  bomFormat: z.literal('CycloneDX'),
  components: z.array(
    z.object({
      'bom-ref': z.string(),
      licenses: z
        .array(
          z.object({
            license: z
              .object({ id: z.string().optional(), name: z.string().optional() })
              .optional(),
            expression: z.string().optional(),
          }),
        )
        .default([]),
    }),
  ),
});

export type Sbom = z.infer<typeof sbomSchema>;

/** Throws unless it is a bill of materials in the form of CycloneDX. */
export function parseSbom(text: string): Sbom {
  return sbomSchema.parse(JSON.parse(text));
}

/** The packages whose licence is not allowed, each with its licence. */
export function refusedLicences({ components }: Sbom): string[] {
  return components.flatMap(({ 'bom-ref': name, licenses }) => {
    const ids = licenses.map(
      ({ license, expression }) => license?.id ?? license?.name ?? expression ?? '',
    );
    const isAllowed = ids.length > 0 && ids.every((id) => ALLOWED_LICENCES.has(id));
    return isAllowed ? [] : [`${name}: ${ids.join(', ') || 'no licence'}`];
  });
}

const auditSchema = z.object({
  vulnerabilities: z.record(
    z.string(),
    z.object({
      via: z.array(
        z.union([
          z.string(),
          z.object({ url: z.string(), title: z.string(), severity: z.string() }),
        ]),
      ),
    }),
  ),
});

/** The advisories about packages in production that nobody has accepted; null when `text` is no audit. */
export function openAdvisories(
  text: string,
  accepted: Readonly<Record<string, string>>,
): string[] | null {
  const audit = auditSchema.safeParse(parseJson(text));
  if (!audit.success) return null;
  const found = Object.entries(audit.data.vulnerabilities).flatMap(([name, { via }]) =>
    via.flatMap((each) => {
      if (typeof each === 'string') return [];
      const id = each.url.split('/').at(-1) ?? each.url;
      return id in accepted ? [] : [`${name}: ${each.title} (${each.severity}, ${each.url})`];
    }),
  );
  return [...new Set(found)];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
