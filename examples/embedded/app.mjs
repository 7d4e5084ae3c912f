import express from 'express'
import { createPostern } from 'postern'

const postern = await createPostern({ policy: './postern.yaml' })
postern.startWorker()

const app = express()
app.use('/otp', postern.router)
const server = app.listen(process.env.PORT ?? 3000)
process.on('SIGTERM', () => {
  server.close()
  postern.close()
})
