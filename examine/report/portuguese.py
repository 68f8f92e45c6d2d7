"""x"""
TEXTS={}
CHART_LOCALE={}
