import { RATE_SCENARIOS } from './rate-scenarios.ts';
import { RULES, type RuleName } from './rules.ts';
import { loadOf, SCENARIOS } from './scenarios.ts';
import { simulate } from './simulate.ts';
import { scoreOf, tableOf } from './table.ts';

/** The simulation runs in virtual time: the same seed gives the same table on every machine. */
const SEED = 1;
const BOUNDS = { floor: 1, start: 16, ceiling: 1_000 };

const rules = Object.keys(RULES) as RuleName[];
const limits = SCENARIOS.flatMap((scenario) =>
  rules.map((rule) => {
    const run = simulate(loadOf(scenario, SEED), RULES[rule](BOUNDS));
    return { scenario: scenario.name, rule, score: scoreOf(run, scenario) };
  }),
);
const rates = RATE_SCENARIOS.flatMap((scenario) =>
  [true, false].map((isRateLearned) => {
    const run = simulate(loadOf(scenario, SEED, isRateLearned), RULES.chosen(BOUNDS));
    const rule = isRateLearned ? 'learned' : 'only Retry-After';
    return { scenario: scenario.name, rule, score: scoreOf(run, scenario) };
  }),
);
console.log(tableOf([...limits, ...rates]));
