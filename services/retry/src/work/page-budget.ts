/** Memory for the pages of all resends, and of all releases of waiting deliveries, that this process works on. */
export interface PageBudget {
  /** Returns how many deliveries the next page may have: half of what is free, from 20 to `max` (500). */
  pageSize: (max?: number) => number;
  /** Counts a page, whether there is room or not. Returns the function that releases it. */
  reserve: (deliveries: number) => () => void;
  usedBytes: () => number;
}

/** The id in the page, what was read of the delivery, its record and when that was published. */
const DELIVERY_BYTES = 800;
/** Deliveries to one webhook under way at once. More would overload an endpoint that recovers. */
const PAGE_SIZE = { max: 500, min: 20 };

export function createPageBudget(budgetBytes: number): PageBudget {
  let reserved = 0;
  return {
    pageSize(max = PAGE_SIZE.max) {
      const free = Math.floor((budgetBytes / DELIVERY_BYTES - reserved) / 2);
      return Math.min(max, Math.max(PAGE_SIZE.min, free));
    },
    reserve(deliveries) {
      reserved += deliveries;
      return () => {
        reserved -= deliveries;
      };
    },
    usedBytes: () => reserved * DELIVERY_BYTES,
  };
}
