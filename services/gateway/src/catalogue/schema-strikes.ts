import { HOUR_MS } from '@posthorn/domain/stats.ts';

/** A schema is not used any more after so many strikes within an hour, and all schemas of a company after so many of its. */
const OF_SCHEMA = 3;
const OF_COMPANY = 10;
/** Each strike took a tenth of a second, so that an hour has room for 36,000. */
const MOST_KEPT = 36_000;

/**
 * The checks of payloads that were stopped because they took too long (docs/contract.md C28.7). A schema that blocks does so
 * until it is changed, which gives it another id, or the process ends; a company until an hour after its last strike.
 */
export class SchemaStrikes {
  readonly #monotonicMs: () => number;
  /** By the id of a schema, and by that of a company: the times of its last strikes. */
  readonly #times = new Map<string, number[]>();
  readonly #blocked = new Set<string>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Returns what blocks from now on. */
  add(companyId: string, schemaId: string): 'schema' | 'company' | null {
    const isSchema = this.#count(schemaId, OF_SCHEMA);
    const isCompany = this.#count(companyId, OF_COMPANY);
    if (isSchema) keepNewest(this.#blocked.add(schemaId));
    if (isCompany) return 'company';
    return isSchema ? 'schema' : null;
  }

  areBlocking(companyId: string, schemaId: string): boolean {
    if (this.#times.size === 0) return false;
    if (this.#blocked.has(schemaId)) return true;
    const times = this.#times.get(companyId);
    return times?.length === OF_COMPANY && this.#isRecent(times.at(-1));
  }

  /** Notes a strike, and returns whether there are as many within an hour as make it block. */
  #count(id: string, most: number): boolean {
    const before = (this.#times.get(id) ?? []).filter((atMs) => this.#isRecent(atMs));
    const times = [...before, this.#monotonicMs()].slice(-most);
    this.#times.delete(id);
    this.#times.set(id, times);
    keepNewest(this.#times);
    return times.length === most;
  }

  #isRecent(atMs = -Infinity): boolean {
    return this.#monotonicMs() - atMs < HOUR_MS;
  }
}

function keepNewest(kept: Map<string, unknown> | Set<string>): void {
  const [oldest] = kept.keys();
  if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
}
