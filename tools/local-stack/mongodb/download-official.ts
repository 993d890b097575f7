import { MongoBinary } from 'mongodb-memory-server-core';

// A program of its own, so that a download which hangs can be ended: the library has no deadline.
const [version, downloadDir] = process.argv.slice(2);
if (version === undefined || downloadDir === undefined) throw new Error('usage: VERSION FOLDER');
console.log(await MongoBinary.getPath({ version, downloadDir, checkMD5: true }));
