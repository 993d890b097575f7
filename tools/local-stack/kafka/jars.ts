import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir, cachedFolder } from '../machine/cache.ts';
import type { Children } from '../processes/children.ts';
import type { Log } from '../waiting.ts';

const POM = join(import.meta.dirname, 'pom.xml');

/** Contains a hash of pom.xml, so that another version gets another folder. */
function folderName(): string {
  const fingerprint = createHash('sha256').update(readFileSync(POM)).digest('hex').slice(0, 12);
  return `kafka-${fingerprint}`;
}

export function hasKafkaJars(): boolean {
  return existsSync(join(cacheDir(), folderName()));
}

/** Returns the folder with Kafka and its dependencies (45 jars, 43 MB). Downloads them if it does not exist. */
export async function ensureKafkaJars(children: Children, log: Log): Promise<string> {
  return cachedFolder(folderName(), async (folder) => {
    log('Downloading Kafka with mvn (43 MB, once per user)');
    const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime'];
    await children.run({
      name: 'Downloading Kafka with mvn',
      command: 'mvn',
      args: ['-B', '-q', '-f', POM, ...goal, `-DoutputDirectory=${folder}`],
    });
  });
}
