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

it('lists each value with its default and the comment above it, in place of the table before', () => {
  const readme = 'Before\n<!-- values -->old<!-- end of values -->\nAfter\n';
  expect(chartReadme(readme, VALUES)).toBe(`Before
<!-- values -->

| Value | Default | Meaning |
| --- | --- | --- |
| \`first\` | \`""\` | The first |
| \`group\` |  | A group |
| \`group.enabled\` | \`false\` | On \\| off |
| \`group.limits\` | \`{"cpu":1}\` |  |

<!-- end of values -->
After
`);
});
