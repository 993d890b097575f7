import { createHash } from 'node:crypto';
import { MASK, UNUSED_WITH_ED25519 } from '@posthorn/client/rules';
import { stringify } from 'yaml';
import { eventTypeKeyOf, FIELD_RULES, type Kind, KINDS } from './documents.ts';
import type { Present, PresentObject } from './plan.ts';

/*
 * Writes present objects as documents that make no difference to them. Every field is written, with null for none, so
 * that applying them undoes what was changed since. Secrets are names of variables: without these, what is stored stays.
 */

/** A document as YAML and JSON have it. */
export type ExportedDocument = Readonly<Record<string, unknown>> & {
  kind: Kind;
  uid?: string;
  /** Of an event type, in place of a uid. */
  name?: unknown;
};

export interface Export {
  documents: readonly ExportedDocument[];
  /** Objects without a uid, which no document can name. */
  unnamed: readonly PresentObject[];
  /** Objects with certificates, which the API does not return. */
  withTls: readonly PresentObject[];
}

/** Of objects that were read without secrets. `others` may own them, and are no part of the export. */
export function exportDocuments(
  { objects }: Present,
  others: readonly PresentObject[] = [],
): Export {
  const ordered = KINDS.flatMap((kind) => objects.filter((each) => each.kind === kind));
  const named = ordered.flatMap((each) => (each.uid === null ? [] : [{ ...each, uid: each.uid }]));
  const references = new Map(
    [...named, ...others].flatMap(({ id, uid }) => (uid === null ? [] : [[id, `uid:${uid}`]])),
  );
  const write = (variableOf: VariableOf): ExportedDocument[] =>
    named.map(({ kind, uid, fields }) => ({
      kind,
      ...(kind === 'EventType' ? { name: eventTypeKeyOf(uid).name } : { uid }),
      ...exportedFields(kind, fields, {
        references,
        variableOf: (field) => variableOf(`${uid} ${field}`),
      }),
    }));
  return {
    documents: write(uniqueVariables(write)),
    unnamed: ordered.filter(({ uid }) => uid === null),
    withTls: named.filter(({ fields }) => Boolean(fields.tls)),
  };
}

export function toYaml(documents: readonly ExportedDocument[]): string {
  const texts = documents.map((each) => stringify(each, { lineWidth: 0, version: '1.2' }));
  // A text with such a character is always in double quotes, where the escape means the same. Terminals obey the character.
  return texts.join('---\n').replaceAll(/[\x7f-\x9f]/g, (char) => {
    return `\\x${char.charCodeAt(0).toString(16)}`;
  });
}

type VariableOf = (name: string) => string;

interface Names {
  /** `uid:` and the uid of each id that has one. */
  references: ReadonlyMap<string, string>;
  variableOf: VariableOf;
}

function exportedFields(
  kind: Kind,
  fields: PresentObject['fields'],
  { references, variableOf }: Names,
): Readonly<Record<string, unknown>> {
  const isByCompany = fields.signatureAlgorithm === 'ed25519';
  const secretFrom = (name: string): object => ({ secretFrom: { env: variableOf(name) } });
  const entries = Object.entries(FIELD_RULES[kind]).flatMap(([field, rule]) => {
    const value = fields[field];
    const isUnused = isByCompany && UNUSED_WITH_ED25519.some((each) => each === field);
    const isOfOther = rule.authMethod !== undefined && rule.authMethod !== fields.authMethod;
    const isOwner = rule.owner !== undefined || field === 'environmentId';
    if (value === undefined || isUnused || isOfOther || (isOwner && value === null)) return [];
    if (rule.owner) return [[field, references.get(value as string) ?? value] as const];
    if (rule.type === 'secret') return [[field, secretFrom(field)] as const];
    if (rule.type === 'object') return value === null ? [[field, null] as const] : [];
    if (rule.type !== 'headers') return [[field, value] as const];
    const headers = value as readonly { key: string; value: string }[];
    const exported = headers.map(({ key, value: text }) => {
      return { key, value: text === MASK ? secretFrom(`header ${key}`) : text };
    });
    return [[field, exported] as const];
  });
  return Object.fromEntries(entries);
}

/** Different names may differ in what a variable cannot have: those get a part of their digest. */
function uniqueVariables(write: (variableOf: VariableOf) => unknown): VariableOf {
  const names = new Map<string, Set<string>>();
  write((name) => {
    const variable = plainVariable(name);
    names.set(variable, (names.get(variable) ?? new Set()).add(name));
    return variable;
  });
  return (name) => {
    const variable = plainVariable(name);
    if (names.get(variable)?.size === 1) return variable;
    const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
    return `${variable}_${digest.toUpperCase()}`;
  };
}

/** `orders oauth2ClientSecret` is `WEBHOOK_ORDERS_OAUTH2_CLIENT_SECRET`. */
function plainVariable(name: string): string {
  const words = name.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').replaceAll(/[^A-Za-z0-9]/g, '_');
  return `WEBHOOK_${words.toUpperCase()}`;
}
