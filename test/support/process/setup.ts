/** The environment variable with the address of the setup that `npm test` serves. */
export const SETUP_URL = 'POSTHORN_SETUP_URL';

export interface SetupRequest {
  /** The settings of a Posthorn. */
  env: Record<string, string>;
  /** The name of the company to create. */
  company: string;
  /** Whether topics, collections and indexes are to be created first. */
  isNew: boolean;
}

export interface CreatedCompany {
  companyId: string;
  apiKey: string;
}

/** Creates a company in a database, and before it what the services need when `isNew`. Throws with what went wrong. */
export function setUp(request: SetupRequest): Promise<CreatedCompany> {
  return askSetup('company', request);
}

/** What the runner does for all test files. */
export type SetupTask = 'company' | 'shared' | 'take-database' | 'give-back-database';

/** Has the runner do a task. Throws with what went wrong. */
export async function askSetup<Answer>(task: SetupTask, request: object): Promise<Answer> {
  const url = process.env[SETUP_URL];
  if (!url) throw new Error(`${SETUP_URL} is not set: these tests run with npm test.`);
  const response = await fetch(`${url}/${task}`, { method: 'POST', body: JSON.stringify(request) });
  const text = await response.text();
  if (!response.ok) throw new Error(`The setup failed: ${text}`);
  return JSON.parse(text) as Answer;
}
