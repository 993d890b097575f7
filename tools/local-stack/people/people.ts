/** Somebody whom the local issuer knows. */
export interface LocalPerson {
  /** `sub` of the ID token. */
  id: string;
  name: string;
  email: string;
  groups: readonly string[];
}

/** The four of `npm start -- --people`: one for each role, and one without any. */
export const LOCAL_PEOPLE: readonly LocalPerson[] = [
  person('Ada', 'platform'),
  person('Sam', 'helpdesk'),
  person('Vic', 'observers'),
  person('Nobody', 'lunch'),
];

/** The roles of these groups in the development company. */
export const LOCAL_ROLES = [
  { group: 'platform', role: 'admin' },
  { group: 'helpdesk', role: 'support' },
  { group: 'observers', role: 'viewer' },
] as const;

function person(name: string, group: string): LocalPerson {
  const id = name.toLowerCase();
  return { id, name, email: `${id}@example.com`, groups: [group] };
}

/** Returns the role of a person in the local company, in words. */
export function roleWords({ groups }: LocalPerson): string {
  const found = LOCAL_ROLES.find(({ group }) => groups.includes(group));
  return found?.role ?? 'no role';
}
