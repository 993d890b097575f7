import { publisherContract } from '../../../../../test/support/contract/publisher-contract.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createPublisherStore } from './publishers.ts';

publisherContract(async () => {
  const { db, drop } = await openScratchDatabase();
  return { publishers: createPublisherStore(db), close: drop };
});
