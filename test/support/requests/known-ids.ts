import fc from 'fast-check';

/** Names of parameters and fields that hold an id, with the prefix of those ids. */
export const ID_FIELDS = {
  projectId: 'proj',
  appId: 'app',
  webhookId: 'wh',
  messageId: 'msg',
  deliveryId: 'dlv',
  resendId: 'rsnd',
  keyId: 'key',
  linkId: 'plnk',
} as const;

export type IdField = keyof typeof ID_FIELDS;

export type Ids = Record<IdField, string[]>;

export interface KnownIds {
  /** Of the caller's company, never deleted. */
  own: Ids;
  /** Of the caller's company, for deletes. */
  disposable: Ids;
  /** Of another company. */
  foreign: Ids;
}

export function isIdField(name: string): name is IdField {
  return Object.hasOwn(ID_FIELDS, name);
}

/** Generates well-formed ids that do not exist. */
export const unknownId = (field: IdField): fc.Arbitrary<string> =>
  fc
    .string({
      unit: fc.constantFrom('0', '1', 'a', 'k', 'm', 'z'),
      minLength: 25,
      maxLength: 25,
    })
    .map((random) => `${ID_FIELDS[field]}_0${random}`);

/** Texts in place of an id that careless code may interpret. */
export const ODD_IDS = [
  ...['__proto__', 'constructor', 'toString', '$where', '{"$gt":""}', '[object Object]', 'null'],
  ...['0', '-1', '*', '.*', '../projects', 'a/b', '%', '\0', '\u202e', '😀', "' OR 1=1 --", ' '],
  ...['${7*7}', 'proj_', 'é'.repeat(100), 'x'.repeat(128)],
];
