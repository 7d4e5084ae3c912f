/** A bare Express JSON echo and a bare Express 429: what the framework itself costs. */
import express from 'express'

const app = express()
app.use(express.json())
app.post('/echo', (request, response) => {
  response.json(request.body)
})
app.post('/429', (_request, response) => {
  response.status(429).json({ error: 'too many requests' })
})
app.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'))
process.on('SIGTERM', () => process.exit(0))
