import { MongoBinary } from 'mongodb-memory-server-core';

// A separate program, so that a download that hangs can be killed: the library has no timeout.
const [version, downloadDir] = process.argv.slice(2);
if (version === undefined || downloadDir === undefined) throw new Error('usage: VERSION FOLDER');
console.log(await MongoBinary.getPath({ version, downloadDir, checkMD5: true }));
