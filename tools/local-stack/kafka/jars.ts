import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir, cachedFolder } from '../machine/cache.ts';
import type { Children } from '../processes/children.ts';
import type { Log } from '../waiting.ts';

const POM = join(import.meta.dirname, 'pom.xml');

/** Named after what the pom says, so that another version is another folder. */
function folderName(): string {
  const fingerprint = createHash('sha256').update(readFileSync(POM)).digest('hex').slice(0, 12);
  return `kafka-${fingerprint}`;
}

export function hasKafkaJars(): boolean {
  return existsSync(join(cacheDir(), folderName()));
}

/** The folder with Kafka and all it needs: 45 jars, 43 MB. */
export async function provideKafkaJars(children: Children, log: Log): Promise<string> {
  return cachedFolder(folderName(), async (folder) => {
    log('Downloading Kafka with mvn (43 MB, once per user)');
    const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime'];
    await children.run({
      name: 'The download of Kafka with mvn',
      command: 'mvn',
      args: ['-B', '-q', '-f', POM, ...goal, `-DoutputDirectory=${folder}`],
    });
  });
}
