import { expect, it } from '@jest/globals';
import { chartReadme } from './chart-readme.ts';

const VALUES = `# About the file.

# The first
first: ''

# A group
group:
  # On | off
  enabled: false
  limits: { cpu: 1 }
`;

it('lists each value with a comment, its default and that comment, in place of the table before', () => {
  const readme = 'Before\n<!-- values -->old<!-- end of values -->\nAfter\n';
  expect(chartReadme(readme, VALUES)).toBe(`Before
<!-- values -->

| Value | Default | Meaning |
| --- | --- | --- |
| \`first\` | \`""\` | The first |
| \`group\` |  | A group |
| \`group.enabled\` | \`false\` | On \\| off |

<!-- end of values -->
After
`);
});

it('joins values of a map without a comment, below the comment of the map if there is one', () => {
  const values = `# On and off
way:
  enabled: false
  ports: [80]
  # Where
  host: ''
  path: /
`;
  const readme = chartReadme('<!-- values --><!-- end of values -->', values);
  expect(readme.match(/^\| `.*$/gm)).toEqual([
    '| `way.enabled`, `way.ports` | `false`, `[80]` | On and off |',
    '| `way.host` | `""` | Where |',
  ]);
});
