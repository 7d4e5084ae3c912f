# One image for the API, the workers and the migrations. The command selects one.
FROM node:24.21.0-slim AS base
WORKDIR /app

# Makes the Prisma client and the code field. Only this stage has the tools for that.
FROM base AS generated
COPY package.json package-lock.json prisma.config.ts ./
COPY prisma prisma
COPY web web
RUN npm ci --ignore-scripts && npm run generate && npm run browser

FROM base AS dependencies
COPY package.json package-lock.json ./
# Prisma's generator, 260 MB, is an optional peer of its client. The last two flags leave it out.
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

# The image's user "node", as a number. Otherwise Kubernetes can't see that it is not root.
USER 1000:1000
EXPOSE 3000 9100
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 9100}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/main/api.ts"]
