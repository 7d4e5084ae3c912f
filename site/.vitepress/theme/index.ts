import DefaultTheme from 'vitepress/theme-without-fonts'
import '../../../web/brand/brand.css'
import './style.css'

export default DefaultTheme
