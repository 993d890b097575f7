import { Gauge, type Registry } from 'prom-client';

export interface MemoryBudgets {
  /** Adds a part, whose `usedBytes` is called at each scrape. Throws when the part was added before. */
  add: (part: string, budgetBytes: number, usedBytes: () => number) => void;
}

interface Part {
  part: string;
  bytes: () => number;
}

/**
 * Shows the budget of each cache, queue and buffer of a process, and how much of it is used. The numbers
 * are estimates from lengths: they show which part grows, not the size of the heap.
 */
export function createMemoryBudgets(registry: Registry): MemoryBudgets {
  const budgets: Part[] = [];
  const used: Part[] = [];
  expose(registry, {
    name: 'posthorn_memory_budget_bytes',
    help: 'Bytes that a part of the process may use, estimated.',
    parts: budgets,
  });
  expose(registry, {
    name: 'posthorn_memory_used_bytes',
    help: 'Bytes that a part of the process uses, by the same estimate.',
    parts: used,
  });
  return {
    add(part, budgetBytes, usedBytes) {
      if (budgets.some((budget) => budget.part === part))
        throw new Error(`${part} has a budget already`);
      budgets.push({ part, bytes: () => budgetBytes });
      used.push({ part, bytes: usedBytes });
    },
  };
}

interface Shown {
  name: string;
  help: string;
  parts: readonly Part[];
}

function expose(registry: Registry, { name, help, parts }: Shown): void {
  new Gauge({
    name,
    help,
    labelNames: ['part'],
    registers: [registry],
    collect() {
      for (const { part, bytes } of parts) this.set({ part }, bytes());
    },
  });
}
