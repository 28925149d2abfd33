// A Chromium from a package: unpacked beside it once, with the libraries and fonts it needs, and started.

import { execFileSync } from 'node:child_process';
import { createReadStream, createWriteStream, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync, createBrotliDecompress } from 'node:zlib';
import { chromium } from 'playwright-core';

const MODULES = fileURLToPath(new URL('node_modules', import.meta.url));
const PACKED = `${MODULES}/@sparticuz/chromium/bin`;
/** Among the packages, so that a new installation unpacks them anew. */
const FOLDER = `${MODULES}/.chromium`;

/** Starts it. It finds no host but this machine, and sees nothing of the user's environment. */
export async function launch() {
    if (!existsSync(FOLDER)) await unpack();
    return chromium.launch({
        executablePath: `${FOLDER}/chromium`,
        args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
        env: {
            PATH: process.env.PATH,
            HOME: `${FOLDER}/home`,
            LD_LIBRARY_PATH: `${FOLDER}/lib`,
            FONTCONFIG_FILE: `${FOLDER}/fonts.conf`
        }
    });
}

/** The folder gets its name only when it is complete. */
async function unpack() {
    const folder = `${FOLDER}.${process.pid}`;
    try {
        for (const name of ['home', 'fonts']) mkdirSync(`${folder}/${name}`, { recursive: true });
        const program = createWriteStream(`${folder}/chromium`, { mode: 0o755 });
        await pipeline(createReadStream(`${PACKED}/chromium.br`), createBrotliDecompress(), program);
        untar('al2023.tar.br', folder);
        untar('fonts.tar.br', `${folder}/fonts`);
        // The package's own file names folders of another system.
        writeFileSync(
            `${folder}/fonts.conf`,
            `<?xml version="1.0"?><fontconfig><dir>${FOLDER}/fonts</dir><cachedir>${FOLDER}/home</cachedir></fontconfig>\n`
        );
        try {
            renameSync(folder, FOLDER);
        } catch (error) {
            // Another process was faster.
            if (!existsSync(FOLDER)) throw error;
        }
    } finally {
        rmSync(folder, { recursive: true, force: true });
    }
}

function untar(name, folder) {
    const input = brotliDecompressSync(readFileSync(`${PACKED}/${name}`));
    execFileSync('tar', ['-x', '--no-same-owner', '-C', folder], { input });
}
