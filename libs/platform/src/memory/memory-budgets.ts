import { Gauge, type Registry } from 'prom-client';

export interface MemoryBudgets {
  /** `usedBytes` is asked at each scrape. Each part is added once. */
  add: (part: string, budgetBytes: number, usedBytes: () => number) => void;
}

interface Part {
  part: string;
  bytes: () => number;
}

/**
 * Shows what each cache, queue and buffer of a process may hold and what it holds now. The numbers
 * are estimates from lengths: they say which part grows, not what the heap weighs.
 */
export function createMemoryBudgets(registry: Registry): MemoryBudgets {
  const budgets: Part[] = [];
  const used: Part[] = [];
  expose(registry, {
    name: 'posthorn_memory_budget_bytes',
    help: 'How many bytes a part of the process may hold, by estimate.',
    parts: budgets,
  });
  expose(registry, {
    name: 'posthorn_memory_used_bytes',
    help: 'How many bytes it holds, by the same estimate.',
    parts: used,
  });
  return {
    add(part, budgetBytes, usedBytes) {
      if (budgets.some((budget) => budget.part === part)) throw new Error(`${part} has a budget`);
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
