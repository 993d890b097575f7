import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { StackError } from '../stack-error.ts';

export type BackingName = 'kafka' | 'mongodb' | 'redis';

const COMPOSE_FILE = join(import.meta.dirname, '../../../docker-compose.yml');

/** Returns the image of a service in docker-compose.yml, which is the only place with image versions. */
export function imageOf(
  name: BackingName,
  composeText = readFileSync(COMPOSE_FILE, 'utf8'),
): string {
  const compose = parse(composeText) as { services?: Record<string, { image?: string }> };
  const image = compose.services?.[name]?.image;
  if (image === undefined) throw new StackError(`docker-compose.yml has no image for ${name}.`);
  return image;
}
