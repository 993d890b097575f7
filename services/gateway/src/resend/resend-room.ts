/** Memory for the pages of all resends that this process works on. */
export interface ResendRoom {
  /** Deliveries that the next page may have: half of what is free, at most 500, and 20 in any case. */
  pageSize: () => number;
  /** Counts a page; answers the function that gives its memory back. */
  hold: (deliveries: number) => () => void;
  usedBytes: () => number;
}

/** Its id in the page, what was read of it, its record and when that was published. */
const DELIVERY_BYTES = 800;
/** Deliveries to one webhook that are under way at once; more would not spare a recovering endpoint. */
const PAGE = { most: 500, least: 20 };

export function createResendRoom(budgetBytes: number): ResendRoom {
  let held = 0;
  return {
    pageSize() {
      const free = Math.floor((budgetBytes / DELIVERY_BYTES - held) / 2);
      return Math.min(PAGE.most, Math.max(PAGE.least, free));
    },
    hold(deliveries) {
      held += deliveries;
      return () => {
        held -= deliveries;
      };
    },
    usedBytes: () => held * DELIVERY_BYTES,
  };
}
