/** A target of a scenario, and what was measured. */
export interface Goal {
  name: string;
  unit: string;
  /** Met when the measured value is not above (atMost) or not below (atLeast) the limit. */
  atMost?: number;
  atLeast?: number;
  /** Null when it could not be measured. */
  measured: number | null;
}

export interface JudgedGoal extends Goal {
  isMet: boolean;
}

export function judge(goal: Goal): JudgedGoal {
  const { measured, atMost = Infinity, atLeast = -Infinity } = goal;
  return { ...goal, isMet: measured !== null && measured <= atMost && measured >= atLeast };
}

export function describeLimit({ atMost, atLeast, unit }: Goal): string {
  const parts = [
    atLeast === undefined ? '' : `≥ ${atLeast}`,
    atMost === undefined ? '' : `≤ ${atMost}`,
  ];
  return `${parts.filter(Boolean).join(', ')} ${unit}`.trim();
}
