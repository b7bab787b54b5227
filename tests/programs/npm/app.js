// Does the same as saves.sh, in its working directory.
const fs = require('fs');
process.on('SIGTERM', () => {
    fs.appendFileSync('signals', 'TERM\n');
    const wait = () => fs.existsSync('go') ? (console.log('saved'), process.exit(0)) : setTimeout(wait, 20);
    wait();
});
fs.appendFileSync('pids', process.pid + '\n');
setInterval(() => {}, 1000);
