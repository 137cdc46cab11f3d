import { startPostgres } from './helpers/postgres.ts'

const s = await startPostgres()
console.log(s.url, s.missing)
process.on('SIGTERM', () => void s.stop().then(() => process.exit(0)))
setInterval(() => {}, 1000)
