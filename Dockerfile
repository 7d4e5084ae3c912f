# One image for the API, the workers and the migrations; the command says which one a container is.
FROM node:24.21.0-slim AS base
WORKDIR /app

# The Prisma client and the code field for pages are made, and only this stage holds what makes them.
FROM base AS generated
COPY package.json package-lock.json prisma.config.ts ./
COPY prisma prisma
COPY web web
RUN npm ci --ignore-scripts && npm run generate && npm run browser

FROM base AS dependencies
COPY package.json package-lock.json ./
# Prisma's client names its generator as an optional peer: without the last two it comes along, 260 MB.
RUN npm ci --ignore-scripts --omit=dev --omit=optional --omit=peer

FROM base
ENV NODE_ENV=production
COPY --from=dependencies /app/node_modules node_modules
COPY package.json postern.yaml ./
COPY lua lua
COPY prisma/migrations prisma/migrations
COPY templates templates
COPY src src
COPY web/brand web/brand
COPY web/console web/console
COPY --from=generated /app/src/storage/generated src/storage/generated
COPY --from=generated /app/web/dist web/dist

# The image's user "node", by number so that Kubernetes can see it is not root.
USER 1000:1000
EXPOSE 3000 9100
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 9100}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/main/api.ts"]
