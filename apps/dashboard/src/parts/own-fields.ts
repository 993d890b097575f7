/** What clients set on projects, apps and webhooks for themselves (docs/contract.md C5.12, C5.14). */
export interface OwnFields {
  uid: string | null;
  metadata: Readonly<Record<string, string>>;
}

export const NO_OWN_FIELDS: OwnFields = { uid: null, metadata: {} };

export const MAX_METADATA = { entries: 20, keyChars: 40, valueChars: 500 };

/** A key with its value, as they were typed. */
export interface Entry {
  key: string;
  value: string;
}

/** Returns what a form has of the own fields. A form without one of them leaves it as it is. */
export function readOwnFields(form: FormData): Partial<OwnFields> {
  const uid = form.get('uid');
  const metadata = form.get('metadata');
  return {
    ...(typeof uid === 'string' && { uid: uid.trim() || null }),
    ...(typeof metadata === 'string' && { metadata: metadataOf(JSON.parse(metadata) as Entry[]) }),
  };
}

/** The same, without what is as it was. */
export function changedOwnFields(form: FormData, stored: OwnFields): Partial<OwnFields> {
  const { uid, metadata } = readOwnFields(form);
  return {
    ...(uid !== undefined && uid !== stored.uid && { uid }),
    ...(metadata !== undefined && !isSame(metadata, stored.metadata) && { metadata }),
  };
}

/** Returns what is wrong with an entry beside the others; null when nothing is, or nothing was typed. */
export function entryProblem(entry: Entry, entries: readonly Entry[]): string | null {
  if (entry.key === '') return entry.value === '' ? null : 'Give the value a key';
  const isTwice = entries.some((each) => each !== entry && each.key === entry.key);
  return isTwice ? 'Another row has this key' : null;
}

const metadataOf = (entries: readonly Entry[]): Record<string, string> =>
  Object.fromEntries(entries.filter(({ key }) => key !== '').map(({ key, value }) => [key, value]));

function isSame(one: OwnFields['metadata'], other: OwnFields['metadata']): boolean {
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key]);
}
